/* Records without damage, and whether text is UTF-8: wet/records.py is the reference. */

#include "text.h"

#define MOST_NAME 64

int is_name(Piece one, Piece other)
{
    for (Py_ssize_t each = 0; one.size == other.size && each < one.size; each++)
        if (lower(one.at[each]) != lower(other.at[each]))
            return 0;
    return one.size == other.size;
}

Piece find_field(const Record *record, const char *name)
{
    Piece sought = {(const byte *)name, (Py_ssize_t)strlen(name)};
    for (int each = 0; each < record->count; each++)
        if (is_name(record->names[each], sought))
            return record->values[each];
    return (Piece){NULL, 0};
}

/* Adds a field of printable ASCII; tells whether it is one that Python need not look at. */
static int add_field(Record *record, const byte *at, const byte *end)
{
    const byte *colon = memchr(at, ':', end - at);
    if (!colon || *at == ' ' || record->count == MOST_FIELDS)
        return 0;
    for (const byte *each = at; each < end; each++)
        if (*each < ' ' || *each > '~')
            return 0;
    const byte *value = colon + 1;
    while (colon > at && colon[-1] == ' ')
        colon--;
    if (colon == at || colon - at > MOST_NAME)
        return 0;
    while (value < end && *value == ' ')
        value++;
    while (end > value && end[-1] == ' ')
        end--;
    Piece name = {at, colon - at};
    for (int each = 0; each < record->count; each++)
        if (is_name(record->names[each], name))
            return 0; /* a name that occurs twice may be damage */
    record->names[record->count] = name;
    record->values[record->count++] = (Piece){value, end - value};
    return 1;
}

/* Returns the body's start behind a plain header block, whose fields it adds; NULL where Python has to read it. */
static const byte *read_header(Record *record, const byte *at, const byte *end)
{
    if (end - at < 10 || memcmp(at, "WARC/1.", 7) || at[7] < '0' || at[7] > '9' || memcmp(at + 8, "\r\n", 2))
        return NULL;
    for (at += 10;;) {
        const byte *line = memchr(at, '\n', end - at);
        if (!line || line == at || line[-1] != '\r')
            return NULL;
        if (line == at + 1)
            return line + 1;
        if (!add_field(record, at, line - 1))
            return NULL;
        at = line + 1;
    }
}

/* Returns the Content-Length of a record that has a type, too; -1 where Python has to find its end. */
static Py_ssize_t plain_length(const Record *record, Py_ssize_t most)
{
    Piece digits = find_field(record, "content-length");
    uint64_t length = 0;
    if (!digits.size || digits.size > 19 || !find_field(record, "warc-type").at)
        return -1;
    for (Py_ssize_t each = 0; each < digits.size; each++) {
        if (digits.at[each] < '0' || digits.at[each] > '9')
            return -1;
        length = length * 10 + (uint64_t)(digits.at[each] - '0'); /* of 19 digits at most: no overflow */
    }
    return most >= 0 && length <= (uint64_t)most ? (Py_ssize_t)length : -1;
}

const byte *read_plain(const byte *at, const byte *end, Py_ssize_t most_header, Py_ssize_t most_body, Record *record)
{
    record->count = 0;
    most_header = most_header < 0 ? 0 : most_header;
    const byte *body = read_header(record, at, end - at < most_header ? end : at + most_header);
    Py_ssize_t length = body ? plain_length(record, most_body) : -1;
    if (length < 0 || length > end - body - 11 || memcmp(body + length, "\r\n\r\nWARC/1.", 11))
        return NULL; /* Python has to find out where the next one starts */
    record->body = (Piece){body, length};
    return body + length + 4;
}

/* Adds a field to a dict, its name in lower case; -1 after an error. */
static int put_field(PyObject *fields, Piece name, Piece value)
{
    char letters[MOST_NAME];
    for (Py_ssize_t each = 0; each < name.size; each++)
        letters[each] = (char)lower(name.at[each]);
    PyObject *key = PyUnicode_FromStringAndSize(letters, name.size), *text = key ? decode(value) : NULL;
    int failed = !text || PyDict_SetItem(fields, key, text) < 0;
    Py_XDECREF(key);
    Py_XDECREF(text);
    return failed ? -1 : 0;
}

/* Adds a record to a list; -1 after an error. */
static int add_record(PyObject *records, const Record *record, Py_ssize_t place)
{
    PyObject *fields = PyDict_New();
    int failed = !fields;
    for (int each = 0; !failed && each < record->count; each++)
        failed = put_field(fields, record->names[each], record->values[each]) < 0;
    Piece body = record->body;
    PyObject *made = failed ? NULL : Py_BuildValue("Oy#n", fields, (const char *)body.at, body.size, place);
    failed = !made || PyList_Append(records, made) < 0;
    Py_XDECREF(fields);
    Py_XDECREF(made);
    return failed ? -1 : 0;
}

static PyObject *plain_records(PyObject *Py_UNUSED(unused), PyObject *args)
{
    Py_buffer data;
    Py_ssize_t offset, most_header, most_body;
    if (!PyArg_ParseTuple(args, "y*nnn", &data, &offset, &most_header, &most_body))
        return NULL;
    const byte *start = data.buf, *end = start + data.len, *at = start, *next;
    Record record;
    PyObject *records = PyList_New(0);
    while (at < end && (*at == '\r' || *at == '\n'))
        at++;
    for (; records && (next = read_plain(at, end, most_header, most_body, &record)); at = next)
        if (add_record(records, &record, offset + (at - start)) < 0)
            Py_CLEAR(records);
    PyBuffer_Release(&data);
    return records ? Py_BuildValue("Nn", records, (Py_ssize_t)(at - start)) : NULL;
}

/* A table for UTF-8: `follow[byte] >> state` has the state behind a byte in its lowest six bits. A state is the place of
 * its six bits in each row, so all that does not occur leads to REFUSED. No branch depends on the text. */

enum { REFUSED = 0, WHOLE = 6, LAST = 12, LAST_TWO = 18, LAST_THREE = 24, IN_E0 = 30, IN_ED = 36, IN_F0 = 42, IN_F4 = 48 };

static uint64_t follow[256];

void learn_utf8(void)
{
    const byte rules[][4] = {
        /* the first and the last byte, the state before it and behind it */
        {0x00, 0x7F, WHOLE, WHOLE},     {0xC2, 0xDF, WHOLE, LAST},     {0xE0, 0xE0, WHOLE, IN_E0},
        {0xE1, 0xEC, WHOLE, LAST_TWO},  {0xED, 0xED, WHOLE, IN_ED},    {0xEE, 0xEF, WHOLE, LAST_TWO},
        {0xF0, 0xF0, WHOLE, IN_F0},     {0xF1, 0xF3, WHOLE, LAST_THREE}, {0xF4, 0xF4, WHOLE, IN_F4},
        {0x80, 0xBF, LAST, WHOLE},      {0x80, 0xBF, LAST_TWO, LAST},  {0x80, 0xBF, LAST_THREE, LAST_TWO},
        {0xA0, 0xBF, IN_E0, LAST},      {0x80, 0x9F, IN_ED, LAST},     {0x90, 0xBF, IN_F0, LAST_TWO},
        {0x80, 0x8F, IN_F4, LAST_TWO},
    };
    for (size_t rule = 0; rule < sizeof rules / sizeof *rules; rule++)
        for (int each = rules[rule][0]; each <= rules[rule][1]; each++)
            follow[each] |= (uint64_t)rules[rule][3] << rules[rule][2];
}

int is_valid(Piece text)
{
    const byte *at = text.at, *end = at + text.size;
    uint64_t state = WHOLE;
    for (; end - at >= 32; at += 32) {
        uint64_t words[4];
        memcpy(words, at, 32);
        if ((state & 63) == WHOLE && !((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080u))
            continue;
        for (int each = 0; each < 32; each++)
            state = follow[at[each]] >> (state & 63);
    }
    while (at < end)
        state = follow[*at++] >> (state & 63);
    return (state & 63) == WHOLE;
}

static PyObject *is_utf8(PyObject *Py_UNUSED(unused), PyObject *given)
{
    Py_buffer data;
    if (PyObject_GetBuffer(given, &data, PyBUF_SIMPLE) < 0)
        return NULL;
    int valid = is_valid((Piece){data.buf, data.len});
    PyBuffer_Release(&data);
    return PyBool_FromLong(valid);
}

PyMethodDef record_functions[] = {
    {"plain_records", plain_records, METH_VARARGS,
     "Returns the plain records at the start of bytes (fields by lower-case name, body, offset) and the size of that, given "
     "the offset of the first byte and the most bytes of a header block and of a body. Python has to read the next one."},
    {"is_utf8", is_utf8, METH_O, "Tells whether bytes are valid UTF-8, as bytes.decode does."},
    {0},
};
