/* The lines of a page, trimmed and without blank ones: filters/lines.py is the reference. */

#include "text.h"

const byte may_break[256] = {[10] = 1, [11] = 1, [12] = 1, [13] = 1,  [28] = 1,
                             [29] = 1, [30] = 1, [0xC2] = 1, [0xE2] = 1};

static Py_ssize_t characters(Piece piece)
{
    Py_ssize_t found = 0;
    for (Py_ssize_t each = 0; each < piece.size; each++)
        found += (piece.at[each] & 0xC0) != 0x80;
    return found;
}

/* Adds the text between two places as a line, unless it is blank; -1 after an error. */
static int add_line(Lines *self, const byte *start, const byte *end)
{
    Piece line = trim(start, end);
    if (!line.size)
        return 0;
    if (self->count == self->room) {
        Piece *pieces = grow(self->pieces, &self->room, sizeof(Piece));
        if (!pieces)
            return -1;
        self->pieces = pieces;
    }
    self->pieces[self->count++] = line;
    return 0;
}

/* The place of the first of eight bytes that may begin a line end: it is a control character, 0xC2 or 0xE2; 8 if none is. */
static inline int find_break(const byte *at)
{
    const uint64_t ones = ONES, high = ones << 7;
    uint64_t eight;
    memcpy(&eight, at, 8);
    eight = PY_BIG_ENDIAN ? __builtin_bswap64(eight) : eight;
    uint64_t c2 = eight ^ ones * 0xC2, e2 = eight ^ ones * 0xE2;
    uint64_t found = (((eight - ones * 0x20) & ~eight) | ((c2 - ones) & ~c2) | ((e2 - ones) & ~e2)) & high;
    return found ? __builtin_ctzll(found) >> 3 : 8; /* a byte behind the first one may be found wrongly */
}

/* Cuts a text at all line ends of str.splitlines, and adds its lines; -1 after an error. */
int cut_everywhere(Lines *self, const byte *start, const byte *end)
{
    for (const byte *at = start; at < end;) {
        int passed = end - at >= 8 ? find_break(at) : 0;
        at += passed;
        if (passed == 8)
            continue;
        Py_ssize_t size = break_at(at, end);
        if (size) {
            if (add_line(self, start, at) < 0)
                return -1;
            start = at + size;
        }
        at += size ? size : 1;
    }
    return add_line(self, start, end);
}

/* Cuts a text at \n and \r only. */
static int cut_at_newlines(Lines *self, const byte *start, const byte *end)
{
    int returns = memchr(start, '\r', end - start) != NULL;
    for (;;) {
        const byte *line = memchr(start, '\n', end - start);
        line = line ? line : end;
        while (returns && start < line) {
            const byte *found = memchr(start, '\r', line - start);
            if (!found)
                break;
            if (add_line(self, start, found) < 0)
                return -1;
            start = found + 1;
        }
        if (add_line(self, start, line) < 0)
            return -1;
        if (line == end)
            return 0;
        start = line + 1;
    }
}

PyObject *decode(Piece piece)
{
    return PyUnicode_DecodeUTF8((const char *)piece.at, piece.size, NULL);
}

/* Characters of the lines joined by newlines. */
Py_ssize_t count_characters(const Lines *self)
{
    Py_ssize_t found = self->count ? self->count - 1 : 0;
    for (Py_ssize_t each = 0; each < self->count; each++)
        found += characters(self->pieces[each]);
    return found;
}

static PyObject *unpacked(Lines *self, PyObject *Py_UNUSED(unused))
{
    PyObject *lines = PyList_New(self->count);
    for (Py_ssize_t each = 0; lines && each < self->count; each++) {
        PyObject *line = decode(self->pieces[each]);
        if (!line)
            Py_CLEAR(lines);
        else
            PyList_SET_ITEM(lines, each, line);
    }
    return lines;
}

static PyObject *encoded(Lines *self, PyObject *Py_UNUSED(unused))
{
    Py_ssize_t size = 0;
    for (Py_ssize_t each = 0; each < self->count; each++)
        size += self->pieces[each].size + (each > 0);
    PyObject *joined = PyBytes_FromStringAndSize(NULL, size);
    char *at = joined ? PyBytes_AS_STRING(joined) : NULL;
    for (Py_ssize_t each = 0; joined && each < self->count; each++) {
        if (each)
            *at++ = '\n';
        memcpy(at, self->pieces[each].at, self->pieces[each].size);
        at += self->pieces[each].size;
    }
    return joined;
}

static PyObject *starts(Lines *self, PyObject *Py_UNUSED(unused))
{
    PyObject *made = PyList_New(self->count);
    Py_ssize_t start = 0;
    for (Py_ssize_t each = 0; made && each < self->count; each++) {
        PyObject *number = PyLong_FromSsize_t(start);
        if (!number)
            Py_CLEAR(made);
        else
            PyList_SET_ITEM(made, each, number);
        start += characters(self->pieces[each]) + 1;
    }
    return made;
}

static PyObject *length(Lines *self, PyObject *Py_UNUSED(unused)) { return PyLong_FromSsize_t(count_characters(self)); }

static Py_ssize_t count(PyObject *self) { return ((Lines *)self)->count; }

/* The type */

Lines *make_lines(PyTypeObject *type, Py_buffer body, int everywhere)
{
    Lines *self = (Lines *)type->tp_alloc(type, 0);
    if (!self) {
        PyBuffer_Release(&body);
        return NULL;
    }
    self->body = body;
    const byte *start = body.buf;
    int failed = everywhere ? cut_everywhere(self, start, start + body.len)
                            : cut_at_newlines(self, start, start + body.len);
    if (failed < 0)
        Py_CLEAR(self);
    return self;
}

static PyObject *lines_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(unused))
{
    Py_buffer body;
    int everywhere;
    return PyArg_ParseTuple(args, "s*p", &body, &everywhere) ? (PyObject *)make_lines(type, body, everywhere) : NULL;
}

static void lines_dealloc(Lines *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyMem_Free(self->pieces);
    Py_XDECREF(self->edited);
    PyBuffer_Release(&self->body);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

int is_lines_type(PyObject *type)
{
    if (PyType_Check(type) && ((PyTypeObject *)type)->tp_dealloc == (destructor)lines_dealloc)
        return 1;
    PyErr_SetString(PyExc_TypeError, "lines are needed");
    return 0;
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)run_program, METH_O,
     "Applies the steps of a program, up to the first that drops the page. Returns its place, -1 without one; the lines "
     "that came to the step `count`, -1 without it; how many lines each rule of lines dropped or edited; and whether the "
     "lines are others now."},
    {"unpacked", (PyCFunction)unpacked, METH_NOARGS, "Returns the lines as a list of str."},
    {"encoded", (PyCFunction)encoded, METH_NOARGS, "Returns the lines joined by newlines, in UTF-8."},
    {"starts", (PyCFunction)starts, METH_NOARGS, "Returns where each line starts in that text, in characters."},
    {"length", (PyCFunction)length, METH_NOARGS, "Returns the characters of that text."},
    {0},
};

static PyType_Slot lines_slots[] = {
    {Py_tp_doc, "Lines(body, everywhere): the lines of a text (str, or valid UTF-8), trimmed, without blank ones."},
    {Py_tp_new, lines_new},
    {Py_tp_dealloc, lines_dealloc},
    {Py_tp_methods, methods},
    {Py_sq_length, count},
    {0, NULL},
};

PyType_Spec lines_type = {"c4pipe.native._text.Lines", sizeof(Lines), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, lines_slots};
