/* Many pages in one call: the pages at the start of a WET file's bytes with their keys and lines, and a program on the
 * lines of several pages. wet/records.py and clean/evaluate.py are the reference. */

#include "text.h"

/* What Python gets of each page in numbers: PAGE_ROW in clean/page_batch.py. */
typedef struct {
    Keys keys;
    int64_t size, lines;
} Row;

typedef struct {
    PyObject *pages; /* list */
    Row *rows;
    Py_ssize_t count, room;
    PyObject *lines_type; /* None for texts that are not cut into lines */
    int everywhere, anywhere;
} Pages;

/* The lines of a body; None if there are no lines, or if the text is not cut. */
static PyObject *cut_lines(const Pages *self, PyObject *body)
{
    Py_buffer data;
    if (self->lines_type == Py_None)
        return Py_NewRef(Py_None);
    if (PyObject_GetBuffer(body, &data, PyBUF_SIMPLE) < 0)
        return NULL;
    return (PyObject *)make_lines((PyTypeObject *)self->lines_type, data, self->everywhere);
}

/* Adds (URL, date, body, lines) of a page; -1 after an error. */
static int append_page(Pages *self, Piece url, Piece date, PyObject *body, PyObject *lines)
{
    PyObject *page = Py_BuildValue("s#s#OO", (const char *)url.at, url.size, (const char *)date.at, date.size, body, lines);
    Row *rows = self->count < self->room ? self->rows : grow(self->rows, &self->room, sizeof(Row));
    self->rows = rows ? rows : self->rows;
    int failed = !page || !rows || PyList_Append(self->pages, page) < 0;
    Py_XDECREF(page);
    return failed ? -1 : 0;
}

/* Adds the page of a record: 1 if it did, 0 if Python has to read the record, -1 after an error. */
static int add_page(Pages *self, const Record *record)
{
    Piece url = find_field(record, "warc-target-uri"), date = find_field(record, "warc-date"), body = record->body;
    Row row;
    if (url.size && *url.at == '<')
        url = (Piece){url.at + 1, url.size - 1};
    if (url.size && url.at[url.size - 1] == '>')
        url.size--;
    if (!is_name(find_field(record, "warc-type"), (Piece){(const byte *)"conversion", 10}) || !url.size ||
        !is_valid(body) || !find_keys(url, date, body, self->anywhere, &row.keys))
        return 0;
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)body.at, body.size);
    PyObject *lines = bytes ? cut_lines(self, bytes) : NULL;
    row.size = body.size;
    row.lines = lines && lines != Py_None ? ((Lines *)lines)->count : skip_space(body.at, body.at + body.size) < body.at + body.size;
    int added = !lines ? -1 : row.lines > 0;
    if (added > 0 && append_page(self, url, date, bytes, lines) < 0)
        added = -1;
    if (added > 0)
        self->rows[self->count++] = row;
    Py_XDECREF(bytes);
    Py_XDECREF(lines);
    return added;
}

static PyObject *plain_pages(PyObject *Py_UNUSED(unused), PyObject *args)
{
    Pages self = {.count = 0};
    Py_buffer data;
    Py_ssize_t most_header, most_body;
    if (!PyArg_ParseTuple(args, "y*nnOpp", &data, &most_header, &most_body, &self.lines_type, &self.everywhere,
                          &self.anywhere))
        return NULL;
    const byte *start = data.buf, *end = start + data.len, *at = start, *next;
    Record record;
    int added = self.lines_type == Py_None || is_lines_type(self.lines_type) ? 1 : -1;
    self.pages = PyList_New(0);
    while (at < end && (*at == '\r' || *at == '\n'))
        at++;
    while (self.pages && added > 0 && (next = read_plain(at, end, most_header, most_body, &record)))
        if ((added = add_page(&self, &record)) > 0)
            at = next;
    PyBuffer_Release(&data);
    if (added < 0)
        Py_CLEAR(self.pages);
    PyObject *made = self.pages ? Py_BuildValue("Oy#n", self.pages, self.rows ? (const char *)self.rows : "",
                                                self.count * (Py_ssize_t)sizeof(Row), (Py_ssize_t)(at - start))
                                : NULL;
    Py_XDECREF(self.pages);
    PyMem_Free(self.rows);
    return made;
}

/* What Python gets of each page behind a program, before how many lines each rule of lines took. */
enum { DROPPED_BY, READ, LEFT, HAS_CHANGED, NUMBERS };

static PyObject *run_on_all(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *program, *pages;
    Py_ssize_t judges;
    if (!PyArg_ParseTuple(args, "OO!n", &program, &PyTuple_Type, &pages, &judges))
        return NULL;
    if (judges < 0 || judges > PROGRAM_STEPS) {
        PyErr_SetString(PyExc_ValueError, "so many rules of lines are in no program");
        return NULL;
    }
    Py_ssize_t width = NUMBERS + judges, count = PyTuple_GET_SIZE(pages);
    PyObject *made = PyByteArray_FromStringAndSize(NULL, count * width * (Py_ssize_t)sizeof(int64_t));
    int64_t *row = made ? (int64_t *)PyByteArray_AS_STRING(made) : NULL;
    for (Py_ssize_t each = 0; made && each < count; each++, row += width) {
        PyObject *lines = PyTuple_GET_ITEM(pages, each);
        RunResult run;
        if (!is_lines_type((PyObject *)Py_TYPE(lines)) || run_steps((Lines *)lines, program, &run) < 0) {
            Py_CLEAR(made);
            break;
        }
        row[DROPPED_BY] = run.dropped_by;
        row[READ] = run.read;
        row[LEFT] = ((Lines *)lines)->count;
        row[HAS_CHANGED] = run.has_changed;
        for (Py_ssize_t judge = 0; judge < judges; judge++)
            row[NUMBERS + judge] = judge < run.judges ? run.taken[judge] : -1;
    }
    return made;
}

PyMethodDef page_functions[] = {
    {"plain_pages", plain_pages, METH_VARARGS,
     "Returns the usual pages at the start of a WET file's bytes (URL, date, body, lines), a row of five numbers for each "
     "(key of the URL, time of capture, tie, bytes of the body, lines; 64 bits each), and the size of that. Needs the most "
     "bytes of a header block and of a body, the type `Lines` and how it cuts lines (None: the text is the body, and counts as "
     "one line), and whether schemes of URLs are cut wherever they are. Python has to read the next record."},
    {"run_on_all", run_on_all, METH_VARARGS,
     "Runs a program on a tuple of `Lines`, given its number of rules of lines. Returns for each in 64 bits what `Lines.run` "
     "does: the step that drops the page, the lines that came to the step `count`, the lines that are left, whether they "
     "have changed, and how many lines each rule took, -1 for a rule that was not applied."},
    {0},
};
