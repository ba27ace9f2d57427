/* The extension c4pipe.native._text does for whole pages what Python would do object by object. All of it is optional,
 * and gives what Python gives. This header has what its files share.
 *
 * Who owns which pointer
 *
 * - A `Piece` borrows bytes that something else keeps alive. The pieces of `Lines` point into `body`, a buffer that the
 *   lines hold until they are freed, or into a str in their list `edited`, which only grows. The texts of a program are
 *   in the tuple `given`, which its capsule holds; those of `Words` are in the tuple `words`. UTF-8 of a str (see
 *   `utf8`) belongs to the str, and lives as long as the str.
 * - Arguments from PyArg_ParseTuple are borrowed from the caller until the function returns. A buffer (y*) is released
 *   before that.
 * - Memory of PyMem_* is freed by the function that asked for it, before it returns. Memory that outlives a call is
 *   freed by lines_dealloc, words_dealloc and free_program.
 * - A function that returns -1 or NULL for an error has set an exception, unless its comment says otherwise.
 *
 * The GIL: nothing here releases it. Functions of Python run in four places only: those that edit lines with brackets
 * (line_rules.c), that split sentences (sentences.c), that have the tokens of a chunk (english.c), and str.lower. They
 * may call this extension again and drop their own objects: what is used after such a call is held, and `Lines.busy`
 * keeps `run` from changing lines that a program is at work on. The tables (learn_lower, learn_utf8) are filled when
 * the module is imported, and only read afterwards. */

#ifndef C4PIPE_TEXT_H
#define C4PIPE_TEXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define BLOCK 64 /* bytes or characters that are looked at without branches */
#define ONES 0x0101010101010101u

/* Calls a function that gets the kind of a str first: the compiler makes a version of it for each. */
#define BY_KIND(kind, function, ...) \
    ((kind) == 1 ? function(1, __VA_ARGS__) : (kind) == 2 ? function(2, __VA_ARGS__) : function(4, __VA_ARGS__))

/* Compiled for several processors, and chosen when it is loaded. It needs GCC and the GNU C library. */
#if !defined(__GNUC__) || defined(__clang__) || !defined(__x86_64__) || !defined(__GLIBC__)
#define FOR_VECTORS
#elif __GNUC__ < 12 /* the last without a name for processors of 512 bits */
#define FOR_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define FOR_VECTORS __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#endif

typedef unsigned char byte;

typedef struct {
    const byte *at;
    Py_ssize_t size;
} Piece;

/* Ends of words in characters, or other places in a text. */
typedef struct {
    int64_t *at;
    Py_ssize_t count, room;
} Ends;

typedef struct {
    PyObject_HEAD
    Py_buffer body;   /* the text that the pieces point into, in UTF-8 */
    PyObject *edited; /* list of the str that pieces point into since they were edited; NULL before */
    Piece *pieces;
    Py_ssize_t count, room;
    int busy;         /* a program is at work on the lines */
} Lines;

#define PROGRAM_STEPS 64 /* of a program, at most */

/* What a program did to lines. */
typedef struct {
    Py_ssize_t dropped_by, read;              /* the step that drops the page, the lines at the step `count`; -1 without */
    Py_ssize_t judges, taken[PROGRAM_STEPS];  /* the applied rules of lines; how many lines each dropped or edited */
    int has_changed;                          /* whether the lines are others now */
} RunResult;

#define MOST_FIELDS 64

/* A record without damage. */
typedef struct {
    Piece names[MOST_FIELDS], values[MOST_FIELDS], body;
    int count;
} Record;

/* What a row of a work file has of each page. */
typedef struct {
    uint64_t url;
    int64_t captured;
    uint64_t tie;
} Keys;

#pragma GCC visibility push(hidden)

/* The functions and types of each file, which module.c adds to the module. */
extern PyMethodDef english_functions[], line_rule_functions[], lower_functions[], record_functions[],
    minhash_functions[], page_functions[], sentence_functions[], span_functions[], word_statistics_functions[];
extern PyType_Spec classifier_type, lines_type, words_type;

extern const byte may_break[256]; /* whether a byte may begin a line end of str.splitlines */

/* Reads the record at `at`, and returns where the next one starts; NULL where there is none that is plain. */
const byte *read_plain(const byte *at, const byte *end, Py_ssize_t most_header, Py_ssize_t most_body, Record *record);
int is_name(Piece one, Piece other); /* whether they are the same in any case */
Piece find_field(const Record *record, const char *name); /* its name in lower case; at is NULL without such a field */
int is_valid(Piece text); /* whether it is UTF-8 */
/* Tells whether C knows the keys of a page. `anywhere`: whether schemes are cut wherever they are. */
int find_keys(Piece url, Piece date, Piece body, int anywhere, Keys *keys);
uint64_t murmur(const byte *at, Py_ssize_t size, uint64_t seed);
Lines *make_lines(PyTypeObject *type, Py_buffer body, int everywhere); /* they own the buffer, also after an error */
int is_lines_type(PyObject *type); /* otherwise sets an exception */
int run_steps(Lines *self, PyObject *given, RunResult *result); /* -1 after an error */
int cut_everywhere(Lines *self, const byte *start, const byte *end);
Py_ssize_t count_characters(const Lines *self);
PyObject *decode(Piece piece);
PyObject *run_program(Lines *self, PyObject *given);
int write_lower(Piece text, byte *to);
int learn_lower(void);
int64_t *read_ends(PyObject *joined, Py_buffer *given, Py_ssize_t *words);
void learn_utf8(void);

#pragma GCC visibility pop

/* Bytes of the white space of Python's str that starts at `at`, 0 where there is none. */
static inline Py_ssize_t space_at(const byte *at, const byte *end)
{
    byte first = *at;
    if (first < 0x80)
        return first == ' ' || (first >= 9 && first <= 13) || (first >= 28 && first <= 31);
    if (first == 0xC2 && end - at >= 2)
        return at[1] == 0x85 || at[1] == 0xA0 ? 2 : 0;
    if (first < 0xE1 || first > 0xE3 || end - at < 3)
        return 0;
    if (first == 0xE1)
        return at[1] == 0x9A && at[2] == 0x80 ? 3 : 0;
    if (first == 0xE3)
        return at[1] == 0x80 && at[2] == 0x80 ? 3 : 0;
    if (at[1] == 0x80)
        return at[2] <= 0x8A || at[2] == 0xA8 || at[2] == 0xA9 || at[2] == 0xAF ? 3 : 0;
    return at[1] == 0x81 && at[2] == 0x9F ? 3 : 0;
}

/* Bytes of the white space that ends at `end`. In valid UTF-8 a first byte is no continuation byte. */
static inline Py_ssize_t space_before(const byte *start, const byte *end)
{
    if (end[-1] < 0x80)
        return space_at(end - 1, end);
    for (Py_ssize_t size = 2; size <= 3; size++)
        if (end - start >= size && space_at(end - size, end) == size)
            return size;
    return 0;
}

/* Bytes of the line end at `at`, as str.splitlines has it; of \r\n each is one. */
static inline Py_ssize_t break_at(const byte *at, const byte *end)
{
    byte first = *at;
    if (first < 0x80)
        return (first >= 10 && first <= 13) || (first >= 28 && first <= 30);
    if (first == 0xC2)
        return end - at >= 2 && at[1] == 0x85 ? 2 : 0;
    if (first == 0xE2)
        return end - at >= 3 && at[1] == 0x80 && (at[2] == 0xA8 || at[2] == 0xA9) ? 3 : 0;
    return 0;
}

static inline const byte *skip_space(const byte *at, const byte *end)
{
    for (Py_ssize_t space; at < end && (space = space_at(at, end));)
        at += space;
    return at;
}

static inline Piece trim(const byte *start, const byte *end)
{
    start = skip_space(start, end);
    for (Py_ssize_t space; start < end && (space = space_before(start, end));)
        end -= space;
    return (Piece){start, end - start};
}

static inline byte lower(byte each) { return each >= 'A' && each <= 'Z' ? each + 32 : each; }

static inline uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
    value = (value ^ value >> 27) * 0x94D049BB133111EBu;
    return value ^ value >> 31;
}

/* A step of the hash FNV-1a */
static inline uint64_t add_to_hash(uint64_t hash, uint32_t each) { return (hash ^ each) * 0x100000001B3u; }

/* Borrows the UTF-8 of a str; -1 after an error. */
static inline int utf8(PyObject *text, Piece *piece)
{
    piece->at = (const byte *)PyUnicode_AsUTF8AndSize(text, &piece->size);
    return piece->at ? 0 : -1;
}

static inline int check_str(PyObject *given)
{
    if (PyUnicode_Check(given))
        return 0;
    PyErr_SetString(PyExc_TypeError, "a str is needed");
    return -1;
}

/* Returns a full array with twice the room; NULL after an error, where the array is as before. */
static inline void *grow(void *items, Py_ssize_t *room, size_t size)
{
    Py_ssize_t more = *room ? *room * 2 : 64;
    void *grown = PyMem_Realloc(items, more * size);
    *room = grown ? more : *room;
    return grown ? grown : PyErr_NoMemory();
}

static inline int add_end(Ends *ends, int64_t end)
{
    int64_t *at = ends->count < ends->room ? ends->at : grow(ends->at, &ends->room, sizeof(int64_t));
    if (!at)
        return -1;
    ends->at = at;
    ends->at[ends->count++] = end;
    return 0;
}

#endif
