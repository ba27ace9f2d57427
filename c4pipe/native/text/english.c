/* English words: text/english_words.py is the reference, text/english_tables.py makes the tables. A chunk is the
 * text between white space. A mapping of Python has the tokens of each chunk that is not cut here. */

#include "text.h"

/* What a character is to the tokenizer: bits of the table `kinds`, the same as in english_tables.py. */
enum { LOWER = 1, UPPER = 2, TITLE = 4, SYMBOL = 8, MARK = 16, PREFIX = 32, QUOTE = 64, BEFORE_DOT = 128 };

#define LETTER (LOWER | UPPER | TITLE)
#define KINDS 0x110000
#define KNOWN_BITS 17   /* the table `known` has as many bits as this power of two */
#define LONGEST_KNOWN 12
#define LONGEST_UNIT 5

typedef struct {
    const Py_UCS4 *text;
    const byte *kinds, *known;
    Ends ends, behind; /* of tokens in the joined words; of the suffixes of a chunk in the text, the last first */
} Cutter;

static inline int is_digit(Py_UCS4 each) { return each >= '0' && each <= '9'; }

static inline int is_space(Py_UCS4 each)
{
    return each < 0x80 || (each >= 0x1680 && each <= 0x3000) ? Py_UNICODE_ISSPACE(each) : each == 0x85 || each == 0xA0;
}

/* Whether a piece of the text may be one that only Python cuts: true of all of these and of few others. */
static inline int may_be_known(const Cutter *self, Py_ssize_t start, Py_ssize_t end)
{
    uint64_t hash = 0;
    if (end - start > LONGEST_KNOWN)
        return 0;
    for (; start < end; start++)
        hash = add_to_hash(hash, self->text[start]);
    hash *= 0x9E3779B97F4A7C15u;
    uint64_t first = hash >> (64 - KNOWN_BITS), second = hash >> (64 - 2 * KNOWN_BITS) & ((1 << KNOWN_BITS) - 1);
    return self->known[first >> 3] >> (first & 7) & self->known[second >> 3] >> (second & 7) & 1;
}

/* The length of the prefix of a chunk, which is not empty; -1 where Python has to look at it. */
static inline Py_ssize_t prefix_length(const Cutter *self, Py_ssize_t start, Py_ssize_t end)
{
    const Py_UCS4 *at = self->text + start;
    Py_UCS4 second = end - start > 1 ? at[1] : 0;
    Py_ssize_t dots = 0;
    if (self->kinds[*at] & (MARK | SYMBOL | PREFIX))
        return 1;
    if (*at == '+')
        return !is_digit(second);
    if (*at == '.')
        while (dots < end - start && at[dots] == '.')
            dots++;
    if ((second == '$' && (*at == 'A' || *at == 'C')) || (second == 'S' && *at == 'U' && end - start > 2 && at[2] == '$'))
        return -1;
    return dots > 1 ? dots : 0;
}

/* The length of the suffix of a chunk; -1 where Python has to look at it. */
static inline Py_ssize_t suffix_length(const Cutter *self, Py_ssize_t start, Py_ssize_t end)
{
    const Py_UCS4 *text = self->text;
    Py_ssize_t size = end - start, dots = 0, digit = end - 1;
    if (!size)
        return 0;
    Py_UCS4 last = text[end - 1], before = size > 1 ? text[end - 2] : 0, third = size > 2 ? text[end - 3] : 0;
    byte kind = self->kinds[last], kind_before = self->kinds[before];
    if (last == '.') {
        while (dots < size && text[end - 1 - dots] == '.')
            dots++;
        int is_abbreviation = (kind_before & UPPER && self->kinds[third] & UPPER) ||
                              (third == 0xB0 && before < 128 && before && strchr("FfCcKk", (int)before));
        return dots > 1 ? dots : is_digit(before) || kind_before & (LOWER | BEFORE_DOT) || is_abbreviation;
    }
    if (kind & (MARK | SYMBOL) || last == 0x2013 || last == 0x2014)
        return last == 0x2026 && before == last ? 2 : 1;
    if (is_digit(before) && (last == '+' || last == '%' || (kind & PREFIX && last != '=' && last != 0xA7)))
        return 1;
    if ((last == 's' || last == 'S') && (before == '\'' || before == 0x2019))
        return 2;
    if (last == '$')
        return before == 'A' || before == 'C' || before == 'S' ? -1 : 0;
    while (digit > start && end - digit <= LONGEST_UNIT && !is_digit(text[digit]))
        digit--;
    return digit < end - 1 && is_digit(text[digit]) && may_be_known(self, digit, end) ? -1 : 0;
}

/* The length of the infix at a place of a chunk; 0 without one. */
static inline Py_ssize_t infix_length(const Cutter *self, Py_ssize_t at, Py_ssize_t start, Py_ssize_t end)
{
    const Py_UCS4 *text = self->text;
    Py_UCS4 each = text[at], before = at > start ? text[at - 1] : 0, next = at + 1 < end ? text[at + 1] : 0;
    byte kind_before = self->kinds[before], kind_next = self->kinds[next];
    int is_behind_word = kind_before & LETTER || is_digit(before);
    Py_ssize_t size = 1, most = each == '-' ? 3 : each == 0x2014 ? 2 : 1;
    if (each == 0x2026 || self->kinds[each] & SYMBOL)
        return 1;
    switch (each) {
    case '.':
        while (at + size < end && text[at + size] == '.')
            size++;
        return size > 1 ? size : kind_before & (LOWER | QUOTE) && kind_next & (UPPER | QUOTE);
    case ',':
        return kind_before & LETTER && kind_next & LETTER;
    case ':': case '<': case '>': case '=': case '/':
        return is_behind_word && kind_next & LETTER;
    case '+': case '*': case '^': case '-':
        if (is_digit(before) && (is_digit(next) || next == '-'))
            return 1;
        if (each != '-')
            return 0; /* fall through */
    case '~': case 0x2013: case 0x2014:
        while (size < most && at + size < end && text[at + size] == each)
            size++;
        return is_behind_word && at + size < end && self->kinds[text[at + size]] & LETTER ? size : 0;
    }
    return 0;
}

/* Whether a dot may be one of a host that ends a chunk, or that a port or path follows: it is the third of them, as in
 * an address of numbers, or small letters alone are behind it. */
static int may_end_host(const Cutter *self, Py_ssize_t dot, Py_ssize_t end, Py_ssize_t dots)
{
    Py_ssize_t at = dot + 1;
    while (at < end && self->kinds[self->text[at]] & LOWER)
        at++;
    return dots > 2 || (at > dot + 2 && (at == end || (self->text[at] < 128 && strchr(":/?#", (int)self->text[at]))));
}

/* Adds the ends of the tokens of a chunk without affixes, as cut_at_infixes does; 0 where it may be a URL, -1 after an
 * error. */
static int cut_middle(Cutter *self, Py_ssize_t start, Py_ssize_t end, Py_ssize_t shift)
{
    Py_ssize_t done = start, dots = 0, size;
    int in_host = 1; /* since the start, or behind the last / or @, each character may be one of a host */
    for (Py_ssize_t at = start; at < end; at += size ? size : 1) {
        Py_UCS4 each = self->text[at];
        byte kind = self->kinds[each] & (LETTER | SYMBOL);
        size = 0;
        if (is_digit(each) || (kind && !(kind & SYMBOL)))
            continue;
        if (each == '/' || each == '@') {
            in_host = 1;
            dots = 0;
        } else if (each < 0xA1 && each != '.' && each != '-' && each != '_') {
            in_host = 0;
        } else if (each == '.' && in_host && may_end_host(self, at, end, ++dots)) {
            return 0;
        }
        size = infix_length(self, at, start, end);
        if (!size || at == start)
            continue;
        if ((at > done && add_end(&self->ends, at - shift) < 0) || add_end(&self->ends, at + size - shift) < 0)
            return -1;
        done = at + size;
    }
    return done < end && add_end(&self->ends, end - shift) < 0 ? -1 : 1;
}

/* Adds the ends of a chunk's tokens, which are `shift` characters further in the text than in the joined words; 0 where
 * Python has to cut it, -1 after an error. */
static int cut_chunk(Cutter *self, Py_ssize_t start, Py_ssize_t end, Py_ssize_t shift)
{
    Ends *ends = &self->ends;
    Py_ssize_t first = ends->count;
    self->behind.count = 0;
    while (start < end) {
        Py_ssize_t prefix = prefix_length(self, start, end);
        Py_ssize_t suffix = prefix < 0 ? -1 : suffix_length(self, start + prefix, end);
        if (suffix < 0 || may_be_known(self, start, end))
            return 0;
        if (!prefix && !suffix)
            break;
        if (prefix && suffix && (may_be_known(self, start + prefix, end) || may_be_known(self, start, end - suffix)))
            return 0;
        if ((prefix && add_end(ends, start + prefix - shift) < 0) || (suffix && add_end(&self->behind, end - shift) < 0))
            return -1;
        start += prefix;
        end -= suffix;
    }
    int answer = start < end ? cut_middle(self, start, end, shift) : 1;
    while (answer > 0 && self->behind.count)
        if (add_end(ends, self->behind.at[--self->behind.count]) < 0)
            return -1;
    /* Of a run of tokens that is cut in another way, Python knows the first two. */
    for (Py_ssize_t each = first; answer > 0 && each + 1 < ends->count; each++)
        answer = !may_be_known(self, ends->at[each - 1] + shift, ends->at[each + 1] + shift);
    return answer;
}

/* Adds the ends of a chunk's tokens, which are `tokens`; -1 after an error. */
static int add_tokens(Ends *ends, Py_ssize_t length, PyObject *tokens)
{
    int64_t start = ends->at[ends->count - 1], end = start;
    int failed = !PyTuple_Check(tokens);
    for (Py_ssize_t each = 0; !failed && each < PyTuple_GET_SIZE(tokens); each++) {
        PyObject *token = PyTuple_GET_ITEM(tokens, each);
        failed = !PyUnicode_Check(token);
        end += failed ? 0 : PyUnicode_GET_LENGTH(token);
        if (!failed && add_end(ends, end) < 0)
            return -1;
    }
    if (failed || end - start != length) {
        PyErr_SetString(PyExc_ValueError, "the tokens are not those of the chunk");
        return -1;
    }
    return 0;
}

/* Adds the ends of the tokens that Python has for a chunk: 1 where `runs` has it, 0 where only `chunks` does, -1 after
 * an error. A look into `chunks` may put the chunk into `runs`. */
static int look_up(Ends *ends, PyObject *chunk, PyObject *chunks, PyObject *runs)
{
    PyObject *tokens = chunk ? PyObject_GetItem(chunks, chunk) : NULL;
    PyObject *changed = tokens ? PyDict_GetItemWithError(runs, chunk) : NULL;
    int answer = !tokens || (!changed && PyErr_Occurred()) ? -1 : changed != NULL;
    if (changed)
        Py_SETREF(tokens, Py_NewRef(changed));
    if (answer >= 0 && add_tokens(ends, PyUnicode_GET_LENGTH(chunk), tokens) < 0)
        answer = -1;
    Py_XDECREF(tokens);
    return answer;
}

/* Adds the ends of all tokens of a text, writes its chunks with nothing between them, and adds the numbers of those that
 * are in `runs` to `places`; returns where the chunks end, -1 after an error. */
static Py_ssize_t cut_text(Cutter *self, PyObject *given, byte *joined, PyObject *chunks, PyObject *runs, Ends *places)
{
    const byte *text = PyUnicode_DATA(given);
    Py_ssize_t length = PyUnicode_GET_LENGTH(given), kind = PyUnicode_KIND(given), filled = 0, at = 0;
    byte is_letter[256];
    for (int each = 0; each < 256; each++)
        is_letter[each] = each & LETTER && !(each & ~LETTER);
    for (Py_ssize_t number = 0;; number++) {
        while (at < length && is_space(self->text[at]))
            at++;
        Py_ssize_t start = at, before = self->ends.count;
        int is_word = 1; /* of letters alone: there is nothing to cut, unless it is known */
        for (; at < length && !is_space(self->text[at]); at++)
            is_word &= is_letter[self->kinds[self->text[at]]];
        if (start == at)
            return filled;
        memcpy(joined + filled * kind, text + start * kind, (at - start) * kind);
        int answer = is_word ? 0 : cut_chunk(self, start, at, start - filled);
        if (is_word && !may_be_known(self, start, at))
            answer = add_end(&self->ends, filled + at - start) < 0 ? -1 : 1;
        if (!answer) {
            self->ends.count = before;
            PyObject *chunk = PyUnicode_Substring(given, start, at);
            answer = look_up(&self->ends, chunk, chunks, runs);
            Py_XDECREF(chunk);
            if (answer > 0 && add_end(places, number) < 0)
                return -1;
        }
        if (answer < 0)
            return -1;
        filled += at - start;
    }
}

static PyObject *cut_words(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *given, *kinds, *known, *chunks, *runs, *made = NULL;
    Cutter self = {0};
    Ends places = {0};
    if (!PyArg_ParseTuple(args, "USSOO!", &given, &kinds, &known, &chunks, &PyDict_Type, &runs))
        return NULL;
    if (PyBytes_GET_SIZE(kinds) != KINDS || PyBytes_GET_SIZE(known) != 1 << (KNOWN_BITS - 3)) {
        PyErr_SetString(PyExc_ValueError, "the tables have another size");
        return NULL;
    }
    self.kinds = (byte *)PyBytes_AS_STRING(kinds);
    self.known = (byte *)PyBytes_AS_STRING(known);
    Py_UCS4 *text = PyUnicode_AsUCS4Copy(given);
    byte *joined = PyMem_Malloc(PyUnicode_GET_LENGTH(given) * PyUnicode_KIND(given) + 1);
    Py_ssize_t filled = -1, word = sizeof(int64_t);
    self.text = text;
    if (!joined)
        PyErr_NoMemory();
    else if (text && add_end(&self.ends, 0) == 0)
        filled = cut_text(&self, given, joined, chunks, runs, &places);
    if (filled >= 0)
        made = Py_BuildValue("(Ny#y#)", PyUnicode_FromKindAndData(PyUnicode_KIND(given), joined, filled),
                             (char *)self.ends.at, self.ends.count * word, places.at ? (char *)places.at : "",
                             places.count * word);
    PyMem_Free(text);
    PyMem_Free(joined);
    PyMem_Free(self.ends.at);
    PyMem_Free(self.behind.at);
    PyMem_Free(places.at);
    return made;
}

PyMethodDef english_functions[] = {
    {"cut_words", cut_words, METH_VARARGS,
     "Returns the words of an English text with nothing between them, and as 64-bit numbers their ends and the numbers of "
     "the chunks in `runs`. Two tables (see text/english_tables.py) say which chunks are left to Python: a mapping has "
     "their tokens, and a dict those of chunks with runs."},
    {0},
};
