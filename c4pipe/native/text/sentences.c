/* Where sentences start, mark by mark: SentenceSplitter in filters/page_size.py is the reference. What only the library
 * Punkt can decide, functions of Python are asked. */

#include "text.h"

typedef struct {
    PyObject *text, *unsure; /* the text; the words (a frozenset) behind which a full stop may not end the sentence */
    const void *data;
    int kind;
    Py_ssize_t length;
} Marks;

static int read_marks(Marks *self, PyObject *text, PyObject *unsure)
{
    if (check_str(text) < 0)
        return -1;
    *self = (Marks){text, unsure, PyUnicode_DATA(text), PyUnicode_KIND(text), PyUnicode_GET_LENGTH(text)};
    return 0;
}

static inline Py_UCS4 at(const Marks *self, Py_ssize_t place) { return PyUnicode_READ(self->kind, self->data, place); }

/* The first place from `place` on where white space is, or is not; the end of the text where there is none. */
static Py_ssize_t find_space(const Marks *self, Py_ssize_t place, int is_space)
{
    while (place < self->length && (Py_UNICODE_ISSPACE(at(self, place)) != 0) != is_space)
        place++;
    return place;
}

static inline int is_mark(Py_UCS4 character) { return character == '.' || character == '?' || character == '!'; }

static inline Py_ssize_t find_mark_of_kind(int kind, const Marks *self, Py_ssize_t place)
{
    while (place < self->length && !is_mark(PyUnicode_READ(kind, self->data, place)))
        place++;
    return place;
}

/* The first `.`, `?` or `!` from `place` on; the end of the text where there is none. */
static Py_ssize_t find_mark(const Marks *self, Py_ssize_t place)
{
    return BY_KIND(self->kind, find_mark_of_kind, self, place);
}

/* Whether the library joins a character behind a mark to the sentence before it: a closing quotation mark or bracket. */
static int is_closing(Py_UCS4 character)
{
    switch (character) {
    case '"': case '\'': case ')': case ']': case '}': case 0xab: case 0xbb: case 0x2019: case 0x201d:
        return 1;
    }
    return 0;
}

/* Whether a sentence can begin at a place behind white space, with nothing there that is joined to the one before. */
static int can_begin(const Marks *self, Py_ssize_t place)
{
    Py_UCS4 first = place < self->length ? at(self, place) : ' ';
    if (Py_UNICODE_ISALNUM(first))
        return 1;
    if (Py_UNICODE_ISSPACE(first) || is_mark(first))
        return 0;
    if (is_closing(first) || first == 0x2018 || first == 0x201c)
        return place + 1 < self->length && Py_UNICODE_ISALNUM(at(self, place + 1));
    return 1;
}

/* Where the next sentence begins if one ends at a mark: behind closing characters and a blank (or newline); the length
 * of the text if nothing but closing characters is behind it; -1 where only the library can tell. */
static Py_ssize_t next_start(const Marks *self, Py_ssize_t mark, int with_newlines)
{
    Py_ssize_t end = mark + 1;
    if (mark && Py_UNICODE_ISSPACE(at(self, mark - 1)))
        return -1;
    while (end < self->length && is_closing(at(self, end)))
        end++;
    if (end == self->length)
        return end;
    if (at(self, end) != ' ' && !(with_newlines && at(self, end) == '\n'))
        return -1;
    return can_begin(self, end + 1) ? end + 1 : -1;
}

static Py_ssize_t start_of_word(const Marks *self, Py_ssize_t mark)
{
    while (mark && at(self, mark - 1) != ' ' && at(self, mark - 1) != '\n')
        mark--;
    return mark;
}

static int is_alnum(const Marks *self, Py_ssize_t start, Py_ssize_t end)
{
    for (Py_ssize_t each = start; each < end; each++)
        if (!Py_UNICODE_ISALNUM(at(self, each)))
            return 0;
    return start < end;
}

/* Whether the sentence surely ends at a mark behind a word; -1 after an error. */
static int is_sure(const Marks *self, Py_ssize_t word, Py_ssize_t mark)
{
    Py_ssize_t digits = word;
    if (at(self, mark) != '.')
        return word < mark;
    while (digits < mark && Py_UNICODE_ISDIGIT(at(self, digits)))
        digits++;
    if (mark - word < 2 || digits == mark || !is_alnum(self, word, mark))
        return 0;
    PyObject *text = PyUnicode_Substring(self->text, word, mark);
    PyObject *lower = text ? PyObject_CallMethod(text, "lower", NULL) : NULL;
    int found = lower ? PySet_Contains(self->unsure, lower) : -1;
    Py_XDECREF(text);
    Py_XDECREF(lower);
    return found < 0 ? -1 : !found;
}

typedef struct {
    PyObject *starts; /* of the sentences so far, in characters of the page */
    Py_ssize_t shift; /* where the line starts in the page */
    Py_ssize_t sure;  /* how many starts do not depend on the library any more */
} Found;

static int append(Found *found, Py_ssize_t start)
{
    PyObject *number = PyLong_FromSsize_t(found->shift + start);
    int failed = !number || PyList_Append(found->starts, number) < 0;
    Py_XDECREF(number);
    return failed ? -1 : 0;
}

/* The answer of a function about a part of the text; NULL after an error. */
static PyObject *ask(const Marks *self, PyObject *function, Py_ssize_t start, Py_ssize_t end)
{
    PyObject *part = PyUnicode_Substring(self->text, start, end);
    PyObject *answer = part ? PyObject_CallOneArg(function, part) : NULL;
    Py_XDECREF(part);
    return answer;
}

/* Adds what the library finds in a part of a line, in place of the starts from `sure` on; but for its first `known`. */
static int split(const Marks *self, PyObject *library, Py_ssize_t start, Py_ssize_t end, Found *found, Py_ssize_t known)
{
    PyObject *starts = ask(self, library, start, end);
    int failed = !starts || PyList_SetSlice(found->starts, found->sure, PyList_GET_SIZE(found->starts), NULL) < 0;
    if (!failed && !PyList_Check(starts)) {
        PyErr_SetString(PyExc_TypeError, "a list is needed");
        failed = 1;
    }
    for (Py_ssize_t each = known; !failed && each < PyList_GET_SIZE(starts); each++) {
        Py_ssize_t place = PyLong_AsSsize_t(PyList_GET_ITEM(starts, each));
        failed = (place == -1 && PyErr_Occurred()) || append(found, start + place) < 0;
    }
    Py_XDECREF(starts);
    return failed ? -1 : 0;
}

/* Adds the starts of the sentences of a line; -1 after an error. */
static int add_starts(const Marks *self, PyObject *library, PyObject *ends, Found *found)
{
    Py_ssize_t part = 0; /* where the last sure sentence ends */
    int by_library = 0;  /* whether a mark behind that needs the library */
    found->sure = PyList_GET_SIZE(found->starts);
    if (find_space(self, 0, 0) == self->length)
        return split(self, library, 0, self->length, found, 0);
    if (append(found, 0) < 0)
        return -1;
    found->sure++;
    for (Py_ssize_t mark = find_mark(self, 0); mark + 1 < self->length; mark = find_mark(self, mark + 1)) {
        Py_UCS4 next = at(self, mark + 1);
        if (next == '.' || next == ',' || Py_UNICODE_ISALNUM(next))
            continue; /* the library does not look there */
        Py_ssize_t start = next_start(self, mark, 0);
        if (start == self->length)
            continue; /* no sentence is behind it */
        if (start < 0) {
            by_library = 1;
            continue;
        }
        Py_ssize_t word = start_of_word(self, mark);
        int is_end = is_sure(self, word, mark);
        if (is_end > 0) {
            if (by_library && is_alnum(self, word, mark)) { /* no other mark is directly before this one */
                if (split(self, library, part, start - 1, found, 1) < 0)
                    return -1;
                by_library = 0;
            }
            part = by_library ? part : start;
        } else if (!is_end && find_space(self, word, 1) < mark) {
            by_library = 1;
        } else if (!is_end) {
            Py_ssize_t end = next == ' ' ? find_space(self, start, 1) : mark + 2;
            PyObject *answer = ask(self, ends, word, end);
            is_end = answer ? PyObject_IsTrue(answer) : -1;
            Py_XDECREF(answer);
        }
        if (is_end < 0 || (is_end && append(found, start) < 0))
            return -1;
        if (part == start)
            found->sure = PyList_GET_SIZE(found->starts);
    }
    return by_library ? split(self, library, part, self->length, found, 1) : 0;
}

static PyObject *sentence_starts(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *lines, *unsure, *ends, *library;
    Found found = {0};
    if (!PyArg_ParseTuple(args, "O!O!OO", &PyList_Type, &lines, &PyFrozenSet_Type, &unsure, &ends, &library))
        return NULL;
    found.starts = PyList_New(0);
    for (Py_ssize_t each = 0; found.starts && each < PyList_GET_SIZE(lines); each++) { /* a function may change the list */
        PyObject *line = Py_NewRef(PyList_GET_ITEM(lines, each));
        Marks marks;
        if (read_marks(&marks, line, unsure) < 0 || add_starts(&marks, library, ends, &found) < 0)
            Py_CLEAR(found.starts);
        else
            found.shift += marks.length + 1;
        Py_DECREF(line);
    }
    return found.starts;
}

static PyObject *sure_sentences(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *text, *unsure;
    Py_ssize_t most, found = 0;
    Marks marks;
    if (!PyArg_ParseTuple(args, "UO!n", &text, &PyFrozenSet_Type, &unsure, &most) || read_marks(&marks, text, unsure) < 0)
        return NULL;
    for (Py_ssize_t mark = find_mark(&marks, 0); found < most && mark + 1 < marks.length;
         mark = find_mark(&marks, mark + 1)) {
        Py_ssize_t start = next_start(&marks, mark, 1);
        if (start < 0 || start == marks.length)
            continue;
        int is_end = is_sure(&marks, start_of_word(&marks, mark), mark);
        if (is_end < 0)
            return NULL;
        found += is_end;
    }
    return PyLong_FromSsize_t(found);
}

PyMethodDef sentence_functions[] = {
    {"sentence_starts", sentence_starts, METH_VARARGS,
     "Returns the start of each sentence of a list of lines, in characters of the lines joined by newlines. Needs the words "
     "behind which a full stop may not end the sentence, a function that tells of two words around a mark whether it ends "
     "there, and one that finds the starts in a line that is left to Python."},
    {"sure_sentences", sure_sentences, METH_VARARGS,
     "Returns how many sentences surely end inside a text, given those words; at most a number."},
    {0},
};
