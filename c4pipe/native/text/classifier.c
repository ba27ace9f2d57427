/* The words and n-grams of a text, and the sums of their products with the labels: see filters/classifier.py. */

#include "text.h"

#define NO_ROW (-1)
#define HEAD 16 /* bytes of a word beside its hash: most words are not longer */
#define AHEAD 16 /* memory that is read soon is fetched that many features before: the tables are larger than caches */

typedef struct {
    uint32_t hash;
    int32_t row; /* NO_ROW in a free slot */
    uint32_t start; /* in the dictionary */
    uint32_t size;
    byte head[HEAD];
} Slot;

typedef struct {
    PyObject_HEAD
    Py_buffer dictionary, table, bucket_rows;
    Slot *slots;      /* the words by their hash */
    size_t mask;      /* of slots, a power of two less one */
    int32_t word_count;
    int labels, buckets, word_ngrams, shortest, longest;
    uint64_t reciprocal; /* of the number of buckets: 2^64 divided by it */
} Classifier;

/* A word of a line. */
typedef struct {
    const byte *at;
    Py_ssize_t size;
    uint32_t hash;
} Word;

/* The features of a line so far. Rows wait until their numbers are fetched. */
typedef struct {
    const Classifier *model;
    int64_t *sums;
    Py_ssize_t count;
    int64_t waiting[AHEAD];
} Features;

static const char *const end_of_line = "</s>", *const label_prefix = "__label__";

/* fastText's hash, FNV-1a of signed bytes, from the hash of what comes before. */
static inline uint32_t add_byte(uint32_t hash, byte value) { return (hash ^ (uint32_t)(int8_t)value) * 16777619u; }

static uint32_t hash_of(const byte *at, Py_ssize_t size)
{
    uint32_t hash = 2166136261u;
    for (Py_ssize_t each = 0; each < size; each++)
        hash = add_byte(hash, at[each]);
    return hash;
}

static inline int is_blank(byte value)
{
    return value == ' ' || value == 0 || (value >= '\t' && value <= '\r');
}

static inline int is_end(Word word)
{
    return word.size == (Py_ssize_t)strlen(end_of_line) && !memcmp(word.at, end_of_line, word.size);
}

static inline int is_in_slot(const Classifier *self, const Slot *slot, Word word)
{
    if (slot->hash != word.hash || slot->size != word.size)
        return 0;
    const byte *at = word.size <= HEAD ? slot->head : (const byte *)self->dictionary.buf + slot->start;
    return !memcmp(at, word.at, word.size);
}

static inline size_t place_of(const Classifier *self, uint32_t hash) { return mix(hash) & self->mask; }

static Slot *slot_of(const Classifier *self, Word word)
{
    size_t place = place_of(self, word.hash);
    while (self->slots[place].row != NO_ROW && !is_in_slot(self, &self->slots[place], word))
        place = (place + 1) & self->mask;
    return &self->slots[place];
}

static inline const int32_t *products_of(const Classifier *model, int64_t row)
{
    return (const int32_t *)model->table.buf + row * model->labels;
}

static inline void sum_row(Features *features, int64_t row)
{
    const int32_t *products = products_of(features->model, row);
    for (int label = 0; label < features->model->labels; label++)
        features->sums[label] += products[label];
}

/* Adds a row, in truth the one that came some rows before. */
static inline void add_row(Features *features, int64_t row)
{
    int64_t *waiting = &features->waiting[features->count % AHEAD];
    __builtin_prefetch(products_of(features->model, row));
    if (features->count >= AHEAD)
        sum_row(features, *waiting);
    *waiting = row;
    features->count++;
}

/* Adds the rows that wait. */
static void finish(Features *features)
{
    for (Py_ssize_t each = 0; each < features->count && each < AHEAD; each++)
        sum_row(features, features->waiting[each]);
}

static inline void add_bucket(Features *features, uint64_t hash)
{
    const Classifier *model = features->model;
    uint64_t buckets = model->buckets;
    uint64_t left = hash - (uint64_t)((unsigned __int128)hash * model->reciprocal >> 64) * buckets;
    while (left >= buckets) /* the reciprocal is rounded down */
        left -= buckets;
    int64_t bucket = (int64_t)left;
    if (model->bucket_rows.len)
        bucket = ((const int32_t *)model->bucket_rows.buf)[bucket];
    if (bucket >= 0)
        add_row(features, model->word_count + bucket);
}

static inline int continues(byte value) { return (value & 0xC0) == 0x80; }

/* Adds the n-grams of characters of a word, with its marks < and >. */
static void add_characters(Features *features, const byte *marked, Py_ssize_t size)
{
    int shortest = features->model->shortest, longest = features->model->longest;
    for (Py_ssize_t start = 0; start < size; start++) {
        if (continues(marked[start]))
            continue;
        uint32_t hash = 2166136261u;
        Py_ssize_t at = start;
        for (int count = 1; at < size && count <= longest; count++) {
            do
                hash = add_byte(hash, marked[at++]);
            while (at < size && continues(marked[at]));
            if (count >= shortest && !(count == 1 && (start == 0 || at == size)))
                add_bucket(features, hash);
        }
    }
}

/* Adds a word without its n-grams of words. Returns 1 if it counts for these, 0 if not, -1 after an error. */
static int add_word(Features *features, Word word)
{
    const Classifier *model = features->model;
    int32_t row = slot_of(model, word)->row;
    Py_ssize_t prefix = (Py_ssize_t)strlen(label_prefix);
    if (row != NO_ROW)
        add_row(features, row);
    else if (word.size >= prefix && !memcmp(word.at, label_prefix, prefix))
        return 0;
    if (model->longest && !is_end(word)) {
        byte *marked = PyMem_Malloc(word.size + 2);
        if (!marked)
            return -1;
        marked[0] = '<';
        memcpy(marked + 1, word.at, word.size);
        marked[word.size + 1] = '>';
        add_characters(features, marked, word.size + 2);
        PyMem_Free(marked);
    }
    return 1;
}

static void add_ngrams(Features *features, const int32_t *hashes, Py_ssize_t count)
{
    int most = features->model->word_ngrams;
    for (Py_ssize_t start = 0; start < count; start++) {
        uint64_t hash = (uint64_t)(int64_t)hashes[start];
        for (Py_ssize_t each = start + 1; each < count && each < start + most; each++) {
            hash = hash * 116049371u + (uint64_t)(int64_t)hashes[each];
            add_bucket(features, hash);
        }
    }
}

/* Cuts a line into words, of which the last is the end of the line; returns their number. */
static Py_ssize_t cut(const Classifier *self, const byte *line, Py_ssize_t size, Word *words)
{
    const Word end = {(const byte *)end_of_line, (Py_ssize_t)strlen(end_of_line),
                      hash_of((const byte *)end_of_line, strlen(end_of_line))};
    Py_ssize_t count = 0, at = 0;
    for (;;) {
        while (at < size && is_blank(line[at]))
            at++;
        if (at == size)
            break;
        Word word = {line + at, at, 2166136261u};
        while (at < size && !is_blank(line[at]))
            word.hash = add_byte(word.hash, line[at++]);
        word.size = at - word.size;
        if (is_end(word)) /* inside of the text: fastText stops here */
            break;
        __builtin_prefetch(&self->slots[place_of(self, word.hash)]);
        words[count++] = word;
    }
    words[count++] = end;
    return count;
}

/* Adds all features of a line; -1 after an error. */
static int add_line(Features *features, const byte *line, Py_ssize_t size)
{
    Word *words = PyMem_Malloc((size / 2 + 2) * sizeof *words);
    int32_t *hashes = PyMem_Malloc((size / 2 + 2) * sizeof *hashes);
    int failed = !words || !hashes;
    Py_ssize_t number = failed ? 0 : cut(features->model, line, size, words), count = 0;
    for (Py_ssize_t each = 0; !failed && each < number; each++) {
        if (each + AHEAD < number)
            __builtin_prefetch(&features->model->slots[place_of(features->model, words[each + AHEAD].hash)]);
        int counts = add_word(features, words[each]);
        failed = counts < 0;
        if (counts > 0)
            hashes[count++] = (int32_t)words[each].hash;
    }
    if (failed)
        PyErr_NoMemory();
    else {
        add_ngrams(features, hashes, count);
        finish(features);
    }
    PyMem_Free(words);
    PyMem_Free(hashes);
    return failed ? -1 : 0;
}

static PyObject *classifier_sums(Classifier *self, PyObject *arg)
{
    Features features = {self, PyMem_Calloc(self->labels, sizeof(int64_t)), 0, {0}};
    PyObject *sums = NULL;
    if (!features.sums)
        return PyErr_NoMemory();
    if (!PyBytes_Check(arg))
        PyErr_SetString(PyExc_TypeError, "bytes are needed");
    else if (add_line(&features, (const byte *)PyBytes_AS_STRING(arg), PyBytes_GET_SIZE(arg)) == 0)
        sums = PyTuple_New(self->labels);
    for (int label = 0; sums && label < self->labels; label++) {
        PyObject *sum = PyLong_FromLongLong(features.sums[label]);
        if (sum)
            PyTuple_SET_ITEM(sums, label, sum);
        else
            Py_CLEAR(sums);
    }
    PyMem_Free(features.sums);
    return sums ? Py_BuildValue("(nN)", features.count, sums) : NULL;
}

/* Enters the words of the dictionary into the table; -1 after an error. */
static int list_words(Classifier *self)
{
    const byte *first = self->dictionary.buf, *at = first, *end = at + self->dictionary.len;
    self->mask = 15;
    while (self->mask < 3 * (size_t)self->word_count / 2)
        self->mask = 2 * self->mask + 1;
    self->slots = PyMem_Malloc((self->mask + 1) * sizeof *self->slots);
    if (!self->slots) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t each = 0; each <= self->mask; each++)
        self->slots[each].row = NO_ROW;
    for (int32_t row = 0; row < self->word_count; row++) {
        const byte *stop = memchr(at, 0, end - at);
        if (!stop || end - stop < 10) {
            PyErr_SetString(PyExc_ValueError, "the dictionary is cut off");
            return -1;
        }
        Word word = {at, stop - at, hash_of(at, stop - at)};
        Slot *slot = slot_of(self, word);
        *slot = (Slot){word.hash, row, (uint32_t)(at - first), (uint32_t)word.size, {0}};
        memcpy(slot->head, at, word.size < HEAD ? word.size : HEAD);
        at = stop + 10; /* its count and its type */
    }
    return 0;
}

/* Whether the tables have a row for each word and bucket: nothing is read beside them. */
static int fits(const Classifier *self)
{
    int64_t rows = self->labels > 0 ? self->table.len / 4 / self->labels : 0, hashed = self->buckets;
    const int32_t *of_buckets = self->bucket_rows.buf;
    if (self->labels <= 0 || self->word_count < 0 || self->buckets < 0 || self->word_ngrams < 0)
        return 0;
    if (self->longest <= 0 && self->word_ngrams < 2)
        hashed = 0;
    else if (self->buckets == 0)
        return 0;
    if (self->bucket_rows.len) {
        if (self->bucket_rows.len / 4 < self->buckets)
            return 0;
        hashed = 0;
        for (int each = 0; each < self->buckets; each++)
            hashed = of_buckets[each] >= hashed ? of_buckets[each] + 1 : hashed;
    }
    return self->word_count + hashed <= rows;
}

static PyObject *classifier_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(unused))
{
    Classifier *self = (Classifier *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    int failed = !PyArg_ParseTuple(args, "y*iy*i(iiii)y*", &self->dictionary, &self->word_count, &self->table,
                                   &self->labels, &self->buckets, &self->word_ngrams, &self->shortest,
                                   &self->longest, &self->bucket_rows);
    self->reciprocal = self->buckets > 0 ? UINT64_MAX / (uint64_t)self->buckets : 0;
    if (!failed && (!fits(self) || self->dictionary.len > UINT32_MAX)) {
        PyErr_SetString(PyExc_ValueError, "the parts of a model contradict each other");
        failed = 1;
    }
    if (failed || list_words(self) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void classifier_dealloc(Classifier *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyBuffer_Release(&self->dictionary);
    PyBuffer_Release(&self->table);
    PyBuffer_Release(&self->bucket_rows);
    PyMem_Free(self->slots);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyMethodDef classifier_methods[] = {
    {"sums", (PyCFunction)classifier_sums, METH_O,
     "sums(line: bytes): the number of words and n-grams of a line, and the sum of their products with each label."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot classifier_slots[] = {{Py_tp_doc, "A fastText classifier: see filters/classifier.py."},
                                         {Py_tp_new, classifier_new},
                                         {Py_tp_dealloc, classifier_dealloc},
                                         {Py_tp_methods, classifier_methods},
                                         {0, NULL}};

PyType_Spec classifier_type = {"c4pipe.native._text.Classifier", sizeof(Classifier), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, classifier_slots};
