/* Words of a list that a text has: see filters/listed_words.py. */

#include "text.h"

#define LONGEST_WORD 64

typedef struct {
    PyObject_HEAD
    PyObject *words;      /* tuple of str */
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

static inline uint32_t *sizes_of(Words *self, Py_UCS4 first, Py_UCS4 last)
{
    return &self->sizes[(first & 63) << 6 | (last & 63)];
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
    if (!word.size || !PyUnicode_IS_ASCII(text)) {
        PyErr_SetString(PyExc_ValueError, "a word of ASCII is needed");
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
    PyObject *words;
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &words))
        return NULL;
    Words *self = (Words *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->words = Py_NewRef(words);
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
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

/* A bit for each of up to 64 characters, the lowest for the first: whether it is in a word of ASCII. Without branches,
 * for the compiler to look at many at once. */
static inline uint64_t word_bits(int kind, const void *text, Py_ssize_t at, Py_ssize_t count)
{
    byte each[BLOCK] = {0};
    uint64_t bits = 0, eight;
    for (Py_ssize_t place = 0; place < count; place++) {
        Py_UCS4 character = PyUnicode_READ(kind, text, at + place);
        each[place] = character < 0x80 ? character : 0;
    }
    for (int place = 0; place < BLOCK; place++)
        each[place] = ((byte)((each[place] | 32) - 'a') < 26) | ((byte)(each[place] - '0') < 10) | (each[place] == '_');
    for (int place = 0; place < BLOCK; place += 8) {
        memcpy(&eight, each + place, 8);
        eight = PY_BIG_ENDIAN ? __builtin_bswap64(eight) : eight;
        bits |= (eight * 0x0102040810204080u >> 56) << place; /* the lowest bits of eight bytes side by side */
    }
    return bits;
}

/* Adds the listed word that a word of a text is, if it is one; -1 after an error. */
static int add_word(Words *self, PyObject *found, int kind, const void *text, Py_ssize_t start, Py_ssize_t size)
{
    byte letters[LONGEST_WORD];
    Piece word = {letters, size};
    uint64_t hash = 0;
    if (size > self->longest)
        return 0;
    for (Py_ssize_t each = 0; each < size; each++)
        hash = add_to_hash(hash, letters[each] = PyUnicode_READ(kind, text, start + each));
    size_t place = place_of(self, word, hash);
    return self->table[place].at ? PySet_Add(found, PyTuple_GET_ITEM(self->words, self->index[place])) : 0;
}

/* Adds the words that a text has; -1 after an error. */
static inline int add_words(int kind, Words *self, PyObject *found, PyObject *given)
{
    const void *text = PyUnicode_DATA(given);
    Py_ssize_t length = PyUnicode_GET_LENGTH(given), start = 0;
    uint64_t inside = 0; /* 1 where a word began before a block */
    for (Py_ssize_t at = 0; at <= length; at += BLOCK) { /* a word ends behind the last character at the latest */
        uint64_t bits = length - at >= BLOCK ? word_bits(kind, text, at, BLOCK) : word_bits(kind, text, at, length - at);
        for (uint64_t changes = bits ^ (bits << 1 | inside); changes; changes &= changes - 1) {
            Py_ssize_t here = at + __builtin_ctzll(changes);
            inside = !inside;
            if (inside) {
                start = here;
                continue;
            }
            uint32_t sizes = *sizes_of(self, PyUnicode_READ(kind, text, start), PyUnicode_READ(kind, text, here - 1));
            if (sizes >> ((here - start) & 31) & 1 && add_word(self, found, kind, text, start, here - start) < 0)
                return -1;
        }
    }
    return 0;
}

static PyObject *words_in(Words *self, PyObject *given)
{
    PyObject *found = check_str(given) < 0 ? NULL : PySet_New(NULL);
    if (found && BY_KIND(PyUnicode_KIND(given), add_words, self, found, given) < 0)
        Py_CLEAR(found);
    return found;
}

static PyMethodDef words_methods[] = {
    {"words_in", (PyCFunction)words_in, METH_O, "Returns the set of words that a text has between other ASCII ones."},
    {0},
};

static PyType_Slot words_slots[] = {
    {Py_tp_doc, "Words(words): a tuple of words of ASCII letters, digits and underscores, to be looked for in texts."},
    {Py_tp_new, words_new},
    {Py_tp_dealloc, words_dealloc},
    {Py_tp_methods, words_methods},
    {0, NULL},
};

PyType_Spec words_type = {"c4pipe.native._text.Words", sizeof(Words), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, words_slots};
