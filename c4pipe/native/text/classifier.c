/* The words and n-grams of a text, and the sums of their products with the labels: see text/classifier.py. */

#include "text.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#define NO_ROW (-1)
#define PAGE 4096
#define BATCH 64 /* words that are cut before the first of them is looked up: by then its slot is fetched */
#define AHEAD 128 /* rows that wait until their numbers are fetched: the tables are larger than caches */

/* A word of the dictionary. Its hash is of fastText; it is found by its first sixteen bytes. */
typedef struct {
    uint64_t head, tail;
    uint32_t hash;
    int32_t row; /* NO_ROW in a free slot */
    uint32_t start; /* in the dictionary */
    uint32_t size;
} Slot;

typedef struct {
    PyObject_HEAD
    Py_buffer dictionary, table, bucket_rows;
    byte *memory;     /* of the slots */
    Slot *slots;      /* the words by their hash */
    size_t mask;      /* of slots, a power of two less one */
    int32_t word_count;
    int labels, buckets, word_ngrams, shortest, longest;
    uint64_t reciprocal; /* of the number of buckets: 2^64 divided by it */
} Classifier;

/* A word of a line, with its first sixteen bytes; 0 stands behind a shorter word. */
typedef struct {
    const byte *at;
    Py_ssize_t size;
    uint64_t head, tail;
    size_t place; /* of its slot; the mask is missing */
} Word;

/* The features of a line so far. */
typedef struct {
    const Classifier *model;
    int64_t *sums;
    Py_ssize_t count;
    int waits; /* how many rows wait */
    const int32_t *waiting[AHEAD]; /* the products of each */
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

static inline uint64_t eight_at(const byte *at)
{
    uint64_t eight;
    memcpy(&eight, at, sizeof eight);
    return PY_BIG_ENDIAN ? __builtin_bswap64(eight) : eight;
}

/* Marks bytes below the lowest mark: all bytes where there is none. Marks are the highest bits of bytes. */
static inline uint64_t before(uint64_t marks) { return ((marks & -marks) >> 7) - 1; }

/* Marks the bytes that are at most as large as a blank: exactly up to the first of them. */
static inline uint64_t low_in(uint64_t eight) { return (eight - ONES * (' ' + 1)) & ~eight & ONES * 0x80; }

/* The word at `at`, up to a blank or to the end. */
static inline Word word_at(const byte *at, const byte *end)
{
    Word word = {at, 0, 0, 0, 0};
    uint64_t head = end - at >= 16 ? eight_at(at) : 0, tail = end - at >= 16 ? eight_at(at + 8) : 0;
    uint64_t first = low_in(head), second = low_in(tail);
    if (first | second)
        word.size = (first ? __builtin_ctzll(first) : 64 + __builtin_ctzll(second)) / 8;
    if (end - at < 16 || !(first | second) || !is_blank(at[word.size])) { /* few words */
        while (at + word.size < end && !is_blank(at[word.size]))
            word.size++;
        byte start[16] = {0};
        memcpy(start, at, word.size < 16 ? word.size : 16);
        word.head = eight_at(start);
        word.tail = eight_at(start + 8);
    } else {
        word.head = head & before(first);
        word.tail = first ? 0 : tail & before(second);
    }
    uint64_t last = word.size > 16 ? eight_at(at + word.size - 8) * 0x9E3779B97F4A7C15u : 0;
    unsigned __int128 mixed =
        (unsigned __int128)(word.head ^ 0xBF58476D1CE4E5B9u) * ((word.tail + last) ^ 0x94D049BB133111EBu);
    word.place = (size_t)(mixed >> 64 ^ mixed);
    return word;
}

static inline int is_end(Word word) { return word.head == 0x3E732F3C && !word.tail; } /* </s> */

static inline int is_in_slot(const Classifier *self, const Slot *slot, Word word)
{
    if (slot->head != word.head || slot->tail != word.tail || slot->size != word.size)
        return 0;
    return word.size <= 16 || !memcmp((const byte *)self->dictionary.buf + slot->start, word.at, word.size);
}

static Slot *slot_of(const Classifier *self, Word word)
{
    size_t place = word.place & self->mask;
    while (self->slots[place].row != NO_ROW && !is_in_slot(self, &self->slots[place], word))
        place = (place + 1) & self->mask;
    return &self->slots[place];
}

/* Adds the rows that wait. */
static void add_waiting(Features *features)
{
    int labels = features->model->labels;
    for (int label = 0; label < labels; label += 2) { /* most models have two */
        int64_t sum = 0, next = 0;
        int other = label + (label + 1 < labels);
        for (int each = 0; each < features->waits; each++) {
            sum += features->waiting[each][label];
            next += features->waiting[each][other];
        }
        features->sums[label] += sum;
        features->sums[other] += other > label ? next : 0;
    }
    features->count += features->waits;
    features->waits = 0;
}

static inline void add_row(Features *features, int64_t row)
{
    const int32_t *products = (const int32_t *)features->model->table.buf + row * features->model->labels;
    __builtin_prefetch(products);
    features->waiting[features->waits++] = products;
    if (features->waits == AHEAD)
        add_waiting(features);
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

/* Adds the n-grams of characters of a word, with its marks < and >. */
static void add_characters(Features *features, const byte *marked, Py_ssize_t size)
{
    int shortest = features->model->shortest, longest = features->model->longest;
    for (Py_ssize_t start = 0; start < size; start++) {
        if ((marked[start] & 0xC0) == 0x80)
            continue;
        uint32_t hash = 2166136261u;
        Py_ssize_t at = start;
        for (int count = 1; at < size && count <= longest; count++) {
            do
                hash = add_byte(hash, marked[at++]);
            while (at < size && (marked[at] & 0xC0) == 0x80);
            if (count >= shortest && !(count == 1 && (start == 0 || at == size)))
                add_bucket(features, hash);
        }
    }
}

/* Adds a word without its n-grams of words. Returns 1 if it counts for these, 0 if not, -1 after an error. */
static int add_word(Features *features, Word word, int32_t *hash)
{
    const Classifier *model = features->model;
    const Slot *slot = slot_of(model, word);
    Py_ssize_t prefix = (Py_ssize_t)strlen(label_prefix);
    if (slot->row != NO_ROW)
        add_row(features, slot->row);
    else if (word.size >= prefix && !memcmp(word.at, label_prefix, prefix))
        return 0;
    *hash = (int32_t)(slot->row != NO_ROW ? slot->hash : hash_of(word.at, word.size));
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

/* Cuts the next words of a line, of which the last is the end of the line, up to BATCH; returns their number. */
static int cut(const Classifier *self, const byte **line, const byte *end, Word *words)
{
    const byte *at = *line, *last = (const byte *)end_of_line;
    int count = 0;
    while (count < BATCH) {
        while (at < end && is_blank(*at))
            at++;
        Word word = at < end ? word_at(at, end) : word_at(last, last + strlen(end_of_line));
        at += word.size;
        __builtin_prefetch(&self->slots[word.place & self->mask]);
        words[count++] = word;
        if (is_end(word)) /* also inside of the text: fastText stops here */
            break;
    }
    *line = at;
    return count;
}

/* Adds all features of a line; -1 after an error. */
static int add_line(Features *features, const byte *line, Py_ssize_t size)
{
    int32_t *hashes = PyMem_Malloc((size / 2 + 2) * sizeof *hashes);
    Word words[BATCH];
    int failed = !hashes;
    Py_ssize_t count = 0;
    const byte *end = line + size;
    for (int number = 0; !failed && !(number && is_end(words[number - 1]));) {
        number = cut(features->model, &line, end, words);
        for (int each = 0; !failed && each < number; each++) {
            int counts = add_word(features, words[each], &hashes[count]);
            failed = counts < 0;
            count += counts > 0;
        }
    }
    if (failed)
        PyErr_NoMemory();
    else {
        add_ngrams(features, hashes, count);
        add_waiting(features);
    }
    PyMem_Free(hashes);
    return failed ? -1 : 0;
}

static PyObject *classifier_sums(Classifier *self, PyObject *arg)
{
    Features features = {self, PyMem_Calloc(self->labels, sizeof(int64_t)), 0, 0, {0}};
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

/* Makes the table of words, without a word; -1 after an error. It begins with a page of memory: so no slot is in two cache
 * lines, and the system can be asked for pages of megabytes, as NumPy does, whose addresses are found faster. */
static int make_slots(Classifier *self)
{
    self->mask = 15;
    while (self->mask < 3 * (size_t)self->word_count / 2)
        self->mask = 2 * self->mask + 1;
    size_t size = (self->mask + 1) * sizeof *self->slots;
    self->memory = PyMem_Malloc(size + PAGE);
    if (!self->memory) {
        PyErr_NoMemory();
        return -1;
    }
    self->slots = (Slot *)(self->memory + (-(uintptr_t)self->memory & (PAGE - 1)));
#ifdef MADV_HUGEPAGE
    if (size >= (size_t)1 << 22)
        (void)madvise(self->slots, size, MADV_HUGEPAGE); /* nothing depends on the answer */
#endif
    for (size_t each = 0; each <= self->mask; each++)
        self->slots[each].row = NO_ROW;
    return 0;
}

/* Enters the words of the dictionary into the table; -1 after an error. */
static int list_words(Classifier *self)
{
    const byte *first = self->dictionary.buf, *at = first, *end = at + self->dictionary.len;
    for (int32_t row = 0; row < self->word_count; row++) {
        const byte *stop = memchr(at, 0, end - at);
        if (!stop || end - stop < 10) {
            PyErr_SetString(PyExc_ValueError, "the dictionary is cut off");
            return -1;
        }
        Word word = word_at(at, stop);
        if (word.size == stop - at) /* else it has a blank, so no text has it */
            *slot_of(self, word) = (Slot){word.head, word.tail, hash_of(at, word.size), row, (uint32_t)(at - first),
                                          (uint32_t)word.size};
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
    if (failed || make_slots(self) < 0 || list_words(self) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void classifier_dealloc(Classifier *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyBuffer_Release(&self->dictionary);
    PyBuffer_Release(&self->table);
    PyBuffer_Release(&self->bucket_rows);
    PyMem_Free(self->memory);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyMethodDef classifier_methods[] = {
    {"sums", (PyCFunction)classifier_sums, METH_O,
     "sums(line: bytes): the number of words and n-grams of a line, and the sum of their products with each label."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot classifier_slots[] = {{Py_tp_doc, "A fastText classifier: see text/classifier.py."},
                                         {Py_tp_new, classifier_new},
                                         {Py_tp_dealloc, classifier_dealloc},
                                         {Py_tp_methods, classifier_methods},
                                         {0, NULL}};

PyType_Spec classifier_type = {"c4pipe.native._text.Classifier", sizeof(Classifier), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, classifier_slots};
