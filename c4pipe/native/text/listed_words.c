/* Entries of a list that a text may have: see filters/listed_words.py. */

#include "text.h"

#define LONGEST_WORD 64

typedef struct {
    PyObject_HEAD
    PyObject *words;      /* tuple of str: a word of each entry */
    PyObject *entries;    /* for each word a tuple of its entries (str), and behind each where the word is in it */
    PyObject *anywhere;   /* tuple of str: entries without case that are searched as they are */
    Piece *table;         /* the words by their hash; at is NULL where there is none */
    Py_ssize_t *index;    /* where each is in `words` */
    size_t mask;          /* of places in the table, a power of two less one */
    Py_ssize_t longest;
    uint32_t sizes[1 << 12]; /* by six bits of its first and its last character: a bit for each size of a word */
} Words;

/* The place of a word in the table, or that of the free slot for it. */
static size_t place_of(const Words *self, Piece word, uint64_t hash)
{
    size_t place = mix(hash) & self->mask;
    while (self->table[place].at &&
           (self->table[place].size != word.size || memcmp(self->table[place].at, word.at, word.size)))
        place = (place + 1) & self->mask;
    return place;
}

static inline uint32_t *sizes_of(Words *self, byte first, byte last)
{
    return &self->sizes[(lower(first) & 63) << 6 | (lower(last) & 63)];
}

/* Enters a word of the tuple into the table; -1 after an error. */
static int list_word(Words *self, Py_ssize_t number)
{
    PyObject *text = PyTuple_GET_ITEM(self->words, number);
    Piece word;
    uint64_t hash = 0;
    if (utf8(text, &word) < 0)
        return -1;
    if (word.size > LONGEST_WORD) {
        PyErr_Format(PyExc_ValueError, "a word of more than %d letters", LONGEST_WORD);
        return -1;
    }
    if (!word.size || !PyUnicode_IS_ASCII(text) || number >= PyTuple_GET_SIZE(self->entries) ||
        !PyTuple_Check(PyTuple_GET_ITEM(self->entries, number))) {
        PyErr_SetString(PyExc_ValueError, "a word of ASCII with a tuple of entries is needed");
        return -1;
    }
    for (Py_ssize_t at = 0; at < word.size; at++)
        hash = add_to_hash(hash, word.at[at]);
    size_t place = place_of(self, word, hash);
    *sizes_of(self, word.at[0], word.at[word.size - 1]) |= (uint32_t)1 << (word.size & 31);
    self->table[place] = word;
    self->index[place] = number;
    self->longest = word.size > self->longest ? word.size : self->longest;
    return 0;
}

static PyObject *words_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(unused))
{
    PyObject *words, *entries, *anywhere;
    if (!PyArg_ParseTuple(args, "O!O!O!", &PyTuple_Type, &words, &PyTuple_Type, &entries, &PyTuple_Type, &anywhere))
        return NULL;
    Words *self = (Words *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->words = Py_NewRef(words);
    self->entries = Py_NewRef(entries);
    self->anywhere = Py_NewRef(anywhere);
    self->mask = 15;
    while (self->mask < 4 * (size_t)PyTuple_GET_SIZE(words))
        self->mask = 2 * self->mask + 1;
    self->table = PyMem_Calloc(self->mask + 1, sizeof(Piece));
    self->index = PyMem_Calloc(self->mask + 1, sizeof(Py_ssize_t));
    int failed = !self->table || !self->index;
    if (failed)
        PyErr_NoMemory();
    for (Py_ssize_t each = 0; !failed && each < PyTuple_GET_SIZE(words); each++)
        failed = list_word(self, each) < 0;
    if (failed)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void words_dealloc(Words *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyMem_Free(self->table);
    PyMem_Free(self->index);
    Py_XDECREF(self->words);
    Py_XDECREF(self->entries);
    Py_XDECREF(self->anywhere);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

/* A bit for each of up to 64 bytes, the lowest for the first: whether it is in a word of ASCII. Without branches, for
 * the compiler to look at many at once. */
static inline uint64_t word_bits(const byte *text, Py_ssize_t count)
{
    byte each[BLOCK] = {0};
    uint64_t bits = 0, eight;
    memcpy(each, text, count);
    for (int place = 0; place < BLOCK; place++)
        each[place] = ((byte)((each[place] | 32) - 'a') < 26) | ((byte)(each[place] - '0') < 10) | (each[place] == '_');
    for (int place = 0; place < BLOCK; place += 8) {
        memcpy(&eight, each + place, 8);
        eight = PY_BIG_ENDIAN ? __builtin_bswap64(eight) : eight;
        bits |= (eight * 0x0102040810204080u >> 56) << place; /* the lowest bits of eight bytes side by side */
    }
    return bits;
}

/* Whether a text in any case has an entry at a place. */
static int has_at(Piece text, Py_ssize_t place, Piece entry)
{
    Py_ssize_t same = 0;
    if (place < 0 || entry.size > text.size - place)
        return 0;
    while (same < entry.size && lower(text.at[place + same]) == entry.at[same])
        same++;
    return same == entry.size;
}

/* Adds the entries that a text may have around a word of it; -1 after an error. */
static int add_entries(Words *self, PyObject *found, Piece text, Py_ssize_t start, Py_ssize_t size)
{
    byte letters[LONGEST_WORD];
    uint64_t hash = 0;
    if (size > self->longest)
        return 0;
    for (Py_ssize_t each = 0; each < size; each++)
        hash = add_to_hash(hash, letters[each] = lower(text.at[start + each]));
    size_t place = place_of(self, (Piece){letters, size}, hash);
    PyObject *entries = self->table[place].at ? PyTuple_GET_ITEM(self->entries, self->index[place]) : NULL;
    for (Py_ssize_t each = 0; entries && each + 1 < PyTuple_GET_SIZE(entries); each += 2) {
        PyObject *entry = PyTuple_GET_ITEM(entries, each);
        Py_ssize_t before = PyLong_AsSsize_t(PyTuple_GET_ITEM(entries, each + 1));
        Piece piece;
        if (utf8(entry, &piece) < 0 ||
            ((before < 0 || has_at(text, start - before, piece)) && PySet_Add(found, entry) < 0))
            return -1;
    }
    return 0;
}

/* Adds the entries of words that a text may have; -1 after an error. */
static int add_listed(Words *self, PyObject *found, Piece text)
{
    Py_ssize_t start = 0;
    uint64_t inside = 0; /* 1 where a word began before a block */
    for (Py_ssize_t at = 0; at <= text.size; at += BLOCK) { /* behind the end, a word ends */
        uint64_t bits = word_bits(text.at + at, text.size - at > BLOCK ? BLOCK : text.size - at);
        for (uint64_t changes = bits ^ (bits << 1 | inside); changes; changes &= changes - 1) {
            Py_ssize_t here = at + __builtin_ctzll(changes);
            inside = !inside;
            if (inside)
                start = here;
            else if (*sizes_of(self, text.at[start], text.at[here - 1]) >> ((here - start) & 31) & 1 &&
                     add_entries(self, found, text, start, here - start) < 0)
                return -1;
        }
    }
    return 0;
}

/* Whether a text has another one, of which the first byte is rare. */
static int has_rare(Piece text, Piece sought)
{
    const byte *at = text.at, *end = text.at + text.size;
    while (sought.size <= end - at && (at = memchr(at, *sought.at, end - at - sought.size + 1))) {
        if (!memcmp(at, sought.at, sought.size))
            return 1;
        at++;
    }
    return 0;
}

/* Adds the entries of `anywhere` that a text has; -1 after an error. */
static int add_anywhere(Words *self, PyObject *found, Piece text)
{
    for (Py_ssize_t each = 0; each < PyTuple_GET_SIZE(self->anywhere); each++) {
        PyObject *entry = PyTuple_GET_ITEM(self->anywhere, each);
        Piece sought;
        if (utf8(entry, &sought) < 0 || (sought.size && has_rare(text, sought) && PySet_Add(found, entry) < 0))
            return -1;
    }
    return 0;
}

/* Whether a text has another letter than those of ASCII that is ASCII in lower case (U+0130, U+212A). */
static int has_other_letter(Piece text)
{
    return has_rare(text, (Piece){(const byte *)"\xC4\xB0", 2}) || has_rare(text, (Piece){(const byte *)"\xE2\x84\xAA", 3});
}

static PyObject *entries_in(Words *self, PyObject *given)
{
    Py_buffer data;
    if (PyObject_GetBuffer(given, &data, PyBUF_SIMPLE) < 0)
        return NULL;
    Piece text = {data.buf, data.len};
    PyObject *found = has_other_letter(text) ? Py_NewRef(Py_None) : PySet_New(NULL);
    if (found && found != Py_None && (add_listed(self, found, text) < 0 || add_anywhere(self, found, text) < 0))
        Py_CLEAR(found);
    PyBuffer_Release(&data);
    return found;
}

static PyMethodDef words_methods[] = {
    {"entries_in", (PyCFunction)entries_in, METH_O,
     "Returns the set of entries that a text in UTF-8 may have, in any case; None if only Python can tell."},
    {0},
};

static PyType_Slot words_slots[] = {
    {Py_tp_doc, "Words(words, entries, anywhere): words of ASCII letters, digits and underscores, for each the entries "
                "that have it, each followed by its place in the entry, -1 if only Python can look for the entry; and "
                "entries that are searched as they are."},
    {Py_tp_new, words_new},
    {Py_tp_dealloc, words_dealloc},
    {Py_tp_methods, words_methods},
    {0, NULL},
};

PyType_Spec words_type = {"c4pipe.native._text.Words", sizeof(Words), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, words_slots};
