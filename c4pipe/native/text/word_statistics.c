/* What words and lines consist of, and n-grams of words: text/page_text.py is the reference. The words of a text come
 * joined, with nothing between them, with the end of each. */

#include "text.h"

typedef struct {
    uint32_t hash, first; /* one half of the hash; behind the first word of the first such n-gram, 0 in a free slot */
} Slot;

typedef struct {
    const byte *text;  /* the words with nothing between them, `width` bytes a character; or a text with lines */
    int64_t *ends;     /* 0, and the end of each word, in characters; or the start and the end of each line */
    Py_ssize_t words;
    int width;
    Slot *slots;
    size_t mask;       /* of slots, a power of two less one */
    uint64_t seed;
    byte *often;       /* whether an n-gram, or the start of an n-gram, that begins at a word may occur twice */
    uint32_t *counts;  /* of n-grams, where the first such n-gram begins */
    uint32_t *firsts;  /* where the first n-gram begins that is equal to that at each word; places to look at */
    uint32_t *before;  /* the same of n-grams of a word less */
    Py_ssize_t places;
} Ngrams;

#define START 12 /* characters */
#define PAIR_BITS 11
#define PAIRS (1 << PAIR_BITS)

/* Copies the ends of words, and releases their buffer; NULL where they are not those of `joined`, or after an error. */
int64_t *read_ends(PyObject *joined, Py_buffer *given, Py_ssize_t *words)
{
    Py_ssize_t count = given->len / sizeof(int64_t);
    int64_t *ends = PyMem_Malloc((count + 1) * sizeof(int64_t));
    if (ends)
        memcpy(ends, given->buf, count * sizeof(int64_t));
    PyBuffer_Release(given);
    if (!ends)
        return (int64_t *)PyErr_NoMemory();
    int is_valid = count > 0 && count <= UINT32_MAX && !ends[0] && ends[count - 1] == PyUnicode_GET_LENGTH(joined);
    for (Py_ssize_t each = 1; is_valid && each < count; each++)
        is_valid = ends[each - 1] <= ends[each];
    if (!is_valid) {
        PyErr_SetString(PyExc_ValueError, "the ends are not those of words of the text");
        PyMem_Free(ends);
        return NULL;
    }
    *words = count - 1;
    return ends;
}

static void free_ngrams(Ngrams *self)
{
    PyMem_Free(self->ends);
    PyMem_Free(self->slots);
    PyMem_Free(self->counts);
}

/* Makes room for n-grams of words whose ends are there. Whoever writes a page can't know the seed, so can't write n-grams
 * that have one hash. -1 after an error, where nothing is to be freed. */
static int prepare(PyObject *joined, Ngrams *self)
{
    self->text = PyUnicode_DATA(joined);
    self->width = PyUnicode_KIND(joined);
    self->seed = (uint64_t)PyUnicode_Type.tp_hash(joined);
    self->mask = 15;
    while (self->mask < 2 * (size_t)self->words)
        self->mask = 2 * self->mask + 1;
    self->slots = PyMem_Malloc((self->mask + 1) * sizeof(Slot));
    self->counts = PyMem_Malloc((self->words + 1) * (3 * sizeof(uint32_t) + 1));
    if (self->slots && self->counts) {
        self->firsts = self->counts + self->words + 1;
        self->before = self->firsts + self->words + 1;
        self->often = (byte *)(self->before + self->words + 1);
        return 0;
    }
    free_ngrams(self);
    PyErr_NoMemory();
    return -1;
}

static inline Py_ssize_t ngram_length(const Ngrams *self, Py_ssize_t place, Py_ssize_t size)
{
    return self->ends[place + size] - self->ends[place];
}

/* The hash of characters from the start of a word on, not yet mixed for the last time. */
static inline uint64_t hash_from(int width, const Ngrams *self, Py_ssize_t place, Py_ssize_t characters)
{
    const byte *at = self->text + self->ends[place] * width;
    Py_ssize_t bytes = characters * width, done = 0;
    uint64_t hash = self->seed ^ (uint64_t)bytes, more = 0;
    for (; done + 8 < bytes; done += 8) {
        memcpy(&more, at + done, 8);
        hash = (hash ^ more) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    if (bytes >= 8)
        memcpy(&more, at + bytes - 8, 8);
    else if (self->ends[self->words] - self->ends[place] >= 8) /* a read of eight bytes is quicker than of a few */
        memcpy(&more, at, 8);
    else
        memcpy(&more, at, bytes);
    if (bytes < 8)
        more = !bytes ? 0 : PY_BIG_ENDIAN ? more >> (64 - 8 * bytes) : more << (64 - 8 * bytes);
    return hash ^ more;
}

static void forget_ngrams(Ngrams *self) { memset(self->slots, 0, (self->mask + 1) * sizeof(Slot)); }

/* Returns the place of the first n-gram that is equal to the one at a place, of those that were asked for: equal as a
 * text, or, if its size is 0, with the same first two n-grams `before` as it. */
static inline Py_ssize_t first_ngram(Ngrams *self, Py_ssize_t place, Py_ssize_t size)
{
    const uint32_t *before = self->before;
    Py_ssize_t length = ngram_length(self, place, size);
    uint64_t hash = size ? hash_from(self->width, self, place, length) : self->seed ^ (uint64_t)before[place] << 32 ^ before[place + 1];
    hash = mix(hash);
    for (size_t slot = hash & self->mask;; slot = (slot + 1) & self->mask) {
        Slot *found = &self->slots[slot];
        Py_ssize_t first = (Py_ssize_t)found->first - 1;
        if (first < 0) {
            found->hash = hash >> 32;
            found->first = place + 1;
            return place;
        }
        if (found->hash == hash >> 32 &&
            (size ? length == ngram_length(self, first, size) &&
                        !memcmp(self->text + self->ends[first] * self->width, self->text + self->ends[place] * self->width,
                                length * self->width)
                  : before[first] == before[place] && before[first + 1] == before[place + 1]))
            return first;
    }
}

/* The characters that the most frequent n-gram takes with its spaces; of equally frequent ones the first counts. Called
 * for each size from 1 on: an n-gram can occur twice only if the two n-grams of a word less in it do. */
static Py_ssize_t top_ngram(Ngrams *self, Py_ssize_t size)
{
    Py_ssize_t top = 0, last = self->words - size;
    uint32_t *firsts = self->before;
    self->before = self->firsts;
    self->firsts = firsts;
    forget_ngrams(self);
    memset(self->counts, 0, (self->words + 1) * sizeof(uint32_t));
    for (Py_ssize_t place = 0; place <= last; place++) {
        int is_alone = size > 1 && !(self->often[place] & self->often[place + 1]);
        Py_ssize_t first = is_alone ? place : first_ngram(self, place, size == 1);
        firsts[place] = first;
        uint32_t count = ++self->counts[first];
        if (count > self->counts[top] || (count == self->counts[top] && first < top))
            top = first;
    }
    for (Py_ssize_t place = 0; place <= last; place++)
        self->often[place] = self->counts[firsts[place]] > 1;
    return self->counts[top] ? (ngram_length(self, top, size) + size - 1) * self->counts[top] : 0;
}

/* Finds the places where repeated n-grams of a size, or of a larger one, may begin: most n-grams of START characters begin
 * as no other one does. */
static inline void find_places(int width, Ngrams *self, Py_ssize_t size)
{
    forget_ngrams(self);
    for (Py_ssize_t place = 0; place < self->words; place++) {
        self->often[place] = self->ends[place + size < self->words ? place + size : self->words] < self->ends[place] + START;
        if (self->ends[self->words] - self->ends[place] < START)
            continue;
        uint64_t hash = mix(hash_from(width, self, place, START));
        size_t slot = hash & self->mask;
        while (self->slots[slot].first && self->slots[slot].hash != hash >> 32)
            slot = (slot + 1) & self->mask;
        if (self->slots[slot].first) {
            self->often[place] = self->often[self->slots[slot].first - 1] = 1;
        } else {
            self->slots[slot].hash = hash >> 32;
            self->slots[slot].first = place + 1;
        }
    }
    for (Py_ssize_t place = 0; place < self->words; place++)
        if (self->often[place])
            self->firsts[self->places++] = place;
    while (self->mask > 15 && self->mask / 2 >= 2 * (size_t)self->places)
        self->mask /= 2;
}

/* The characters of n-grams that occurred before. */
static Py_ssize_t repeated_ngrams(Ngrams *self, Py_ssize_t size)
{
    Py_ssize_t characters = 0, next = 0;
    forget_ngrams(self);
    for (Py_ssize_t each = 0; each < self->places && self->firsts[each] <= self->words - size; each++) {
        Py_ssize_t place = self->firsts[each];
        if (place >= next && first_ngram(self, place, size) < place) {
            characters += ngram_length(self, place, size);
            next = place + size;
        }
    }
    return characters;
}

static PyObject *count_ngrams(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *joined;
    Py_buffer ends;
    Ngrams self = {0};
    Py_ssize_t first, tops, last;
    if (!PyArg_ParseTuple(args, "Uy*nnn", &joined, &ends, &first, &tops, &last))
        return NULL;
    first = first > 2 ? first : 2;
    self.ends = read_ends(joined, &ends, &self.words);
    if (!self.ends || prepare(joined, &self) < 0)
        return NULL;
    for (Py_ssize_t size = 1; size < first && first <= tops; size++)
        top_ngram(&self, size);
    PyObject *made = PyTuple_New(last >= first ? last - first + 1 : 0);
    for (Py_ssize_t size = first; made && size <= last; size++) {
        if (size == tops + 1 || (size == first && tops < first))
            BY_KIND(self.width, find_places, &self, size);
        PyObject *number = PyLong_FromSsize_t(size <= tops ? top_ngram(&self, size) : repeated_ngrams(&self, size));
        if (number)
            PyTuple_SET_ITEM(made, size - first, number);
        else
            Py_CLEAR(made);
    }
    free_ngrams(&self);
    return made;
}

/* Writes the most characters that pairs of words with one hash take, and the most such pairs. Equal pairs have one hash. */
static inline void bound_hashes(int width, const Ngrams *self, Py_ssize_t *characters, Py_ssize_t *number)
{
    int64_t lengths[PAIRS] = {0};
    uint32_t counts[PAIRS] = {0};
    uint64_t before = 0;
    for (Py_ssize_t place = 0; place < self->words; place++) {
        uint64_t word = hash_from(width, self, place, ngram_length(self, place, 1)) * 0xBF58476D1CE4E5B9u;
        uint64_t pair = (before ^ word) >> (64 - PAIR_BITS);
        if (place) {
            lengths[pair] += ngram_length(self, place - 1, 2);
            counts[pair]++;
        }
        before = word << 1 | word >> 63; /* or equal words that follow one another would all have one hash */
    }
    for (int each = 0; each < PAIRS; each++) {
        *characters = lengths[each] > *characters ? lengths[each] : *characters;
        *number = counts[each] > *number ? counts[each] : *number;
    }
}

static PyObject *bound_pairs(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *joined;
    Py_buffer ends;
    Ngrams self = {0};
    Py_ssize_t characters = 0, number = 0;
    if (!PyArg_ParseTuple(args, "Uy*", &joined, &ends) || !(self.ends = read_ends(joined, &ends, &self.words)))
        return NULL;
    self.text = PyUnicode_DATA(joined);
    BY_KIND(PyUnicode_KIND(joined), bound_hashes, &self, &characters, &number);
    PyMem_Free(self.ends);
    return Py_BuildValue("nn", characters, number);
}

/* A text of marks: those of ASCII are in a table, others are looked up. */
typedef struct {
    PyObject *text;
    byte ascii[128];
} Marks;

static void read_marks(PyObject *text, Marks *self)
{
    memset(self->ascii, 0, sizeof self->ascii);
    self->text = text;
    for (Py_ssize_t each = 0; each < PyUnicode_GET_LENGTH(text); each++)
        if (PyUnicode_READ_CHAR(text, each) < 128)
            self->ascii[PyUnicode_READ_CHAR(text, each)] = 1;
}

static inline int is_mark(const Marks *self, Py_UCS4 each)
{
    return each < 128 ? self->ascii[each] : PyUnicode_FindChar(self->text, each, 0, PY_SSIZE_T_MAX, 1) >= 0;
}

static PyObject *count_words(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *joined, *punctuation;
    Py_buffer given;
    Py_ssize_t with_letter = 0, with_more = 0, characters = 0, words = 0;
    Marks marks;
    if (!PyArg_ParseTuple(args, "Uy*U", &joined, &given, &punctuation))
        return NULL;
    int64_t *ends = read_ends(joined, &given, &words);
    if (!ends)
        return NULL;
    int kind = PyUnicode_KIND(joined);
    const void *text = PyUnicode_DATA(joined);
    read_marks(punctuation, &marks);
    for (Py_ssize_t each = 0; each < words; each++) {
        int has_letter = 0, is_mixed = 0, is_alphanumeric = 1;
        for (int64_t at = ends[each]; at < ends[each + 1] && !(has_letter && is_mixed); at++) {
            Py_UCS4 character = PyUnicode_READ(kind, text, at);
            int is_letter = character < 128 ? Py_ISALPHA(character) != 0 : Py_UNICODE_ISALPHA(character);
            has_letter |= is_letter;
            is_alphanumeric &= is_letter || Py_UNICODE_ISALNUM(character);
            is_mixed |= !is_mark(&marks, character);
        }
        int64_t length = ends[each + 1] - ends[each];
        int has_more = length && (is_mixed || is_alphanumeric);
        with_letter += has_letter;
        with_more += has_more;
        characters += has_more ? length : 0;
    }
    PyMem_Free(ends);
    return Py_BuildValue("nnn", with_letter, with_more, characters);
}

static PyObject *count_lines(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *text, *given;
    int with_blank, failed = 0;
    Py_ssize_t most, repeats = 0, characters = 0, marked = 0, few = 0;
    Ends ends = {0};
    Marks marks;
    if (!PyArg_ParseTuple(args, "UpUn", &text, &with_blank, &given, &most))
        return NULL;
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    read_marks(given, &marks);
    for (Py_ssize_t start = 0, end; start <= length && !failed; start = end + 1) {
        Py_ssize_t at = start, found = PyUnicode_FindChar(text, '\n', start, length, 1);
        end = found < 0 ? length : found;
        while (!with_blank && at < end && Py_UNICODE_ISSPACE(PyUnicode_READ_CHAR(text, at)))
            at++;
        if (at == end)
            continue;
        failed = add_end(&ends, start) < 0 || add_end(&ends, end) < 0;
        marked += is_mark(&marks, PyUnicode_READ_CHAR(text, end - 1));
        few += end - start <= most;
    }
    failed = failed || add_end(&ends, length) < 0;
    Ngrams self = {.ends = ends.at, .words = ends.count - 1};
    if (failed) /* else `prepare` frees them where it fails */
        PyMem_Free(ends.at);
    if (failed || prepare(text, &self) < 0)
        return NULL;
    forget_ngrams(&self);
    for (Py_ssize_t place = 0; place < self.words; place += 2)
        if (first_ngram(&self, place, 1) < place) {
            repeats++;
            characters += ngram_length(&self, place, 1);
        }
    free_ngrams(&self);
    return Py_BuildValue("nnnnn", self.words / 2, repeats, characters, marked, few);
}

enum { NEWLINES, HYPHENS, BULLETS, HASHES, ELLIPSES, MARKS };

/* Adds the marks of a text, block by block, for the compiler to look at many characters at once. */
static inline void add_marks(int kind, const void *text, Py_ssize_t length, Py_ssize_t *counts)
{
    Py_ssize_t dots = 0; /* in a row, up to a block with two of them, and in it */
    for (Py_ssize_t at = 0, end; at < length; at = end) {
        byte newlines = 0, hyphens = 0, bullets = 0, hashes = 0, ellipses = 0, has_two = 0;
        end = length - at > BLOCK ? at + BLOCK : length;
        for (Py_ssize_t each = at; each < end; each++) {
            Py_UCS4 character = PyUnicode_READ(kind, text, each);
            newlines += character == '\n';
            hyphens += character == '-';
            bullets += character == 0x2022;
            hashes += character == '#';
            ellipses += character == 0x2026;
        }
        for (Py_ssize_t each = at + !at; each < end; each++)
            has_two |= (PyUnicode_READ(kind, text, each) == '.') & (PyUnicode_READ(kind, text, each - 1) == '.');
        counts[NEWLINES] += newlines;
        counts[HYPHENS] += hyphens;
        counts[BULLETS] += bullets;
        counts[HASHES] += hashes;
        counts[ELLIPSES] += ellipses;
        dots = dots || !at ? dots : PyUnicode_READ(kind, text, at - 1) == '.';
        for (Py_ssize_t each = at; has_two && each < end; each++) {
            dots = PyUnicode_READ(kind, text, each) == '.' ? dots + 1 : 0;
            counts[ELLIPSES] += dots && dots % 3 == 0;
        }
        dots = has_two ? dots : 0;
    }
}

FOR_VECTORS static void find_marks(int kind, const void *text, Py_ssize_t length, Py_ssize_t *counts)
{
    BY_KIND(kind, add_marks, text, length, counts);
}

static PyObject *count_marks(PyObject *Py_UNUSED(unused), PyObject *text)
{
    Py_ssize_t counts[MARKS] = {0};
    if (check_str(text) < 0)
        return NULL;
    find_marks(PyUnicode_KIND(text), PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text), counts);
    return Py_BuildValue("nnnnn", counts[NEWLINES], counts[HYPHENS], counts[BULLETS], counts[HASHES], counts[ELLIPSES]);
}

PyMethodDef word_statistics_functions[] = {
    {"count_marks", count_marks, METH_O,
     "Returns the number of line ends, hyphens, bullets, hash signs and ellipses, also those of three full stops, in a text."},
    {"count_words", count_words, METH_VARARGS,
     "Returns, of joined words, their ends and a text of punctuation, the number of words with a letter, the number of "
     "words with more than punctuation, and the characters of these."},
    {"count_lines", count_lines, METH_VARARGS,
     "Returns, of a text, whether blank lines count, a text of marks and a number: how many lines are not empty, how many "
     "repeat an earlier one, the characters of these, and how many end in a mark, and have at most so many characters."},
    {"count_ngrams", count_ngrams, METH_VARARGS,
     "Returns, of joined words, their ends, the first size, the largest size of top n-grams and the largest size: for each "
     "size the characters that the most frequent n-gram takes with its spaces, for larger ones those of repeated n-grams."},
    {"bound_pairs", bound_pairs, METH_VARARGS,
     "Returns, of joined words and their ends, at least the characters that all occurrences of a pair of words in a row "
     "take, and at least how often a pair occurs."},
    {0},
};
