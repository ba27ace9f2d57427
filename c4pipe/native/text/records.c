/* Records without damage, and whether text is UTF-8: wet/records.py is the reference. */

#include "text.h"

#define MOST_NAME 64

/* Adds a field of printable ASCII; tells whether it is one that Python need not look at, -1 after an error. */
static int add_field(PyObject *fields, const byte *at, const byte *end)
{
    const byte *colon = memchr(at, ':', end - at);
    char name[MOST_NAME];
    Py_ssize_t size = 0, before = PyDict_GET_SIZE(fields);
    if (!colon || *at == ' ')
        return 0;
    for (const byte *each = at; each < end; each++)
        if (*each < ' ' || *each > '~')
            return 0;
    const byte *value = colon + 1;
    while (colon > at && colon[-1] == ' ')
        colon--;
    if (colon == at || colon - at > MOST_NAME)
        return 0;
    for (; at < colon; at++)
        name[size++] = (char)lower(*at);
    while (value < end && *value == ' ')
        value++;
    while (end > value && end[-1] == ' ')
        end--;
    PyObject *key = PyUnicode_FromStringAndSize(name, size);
    PyObject *text = key ? PyUnicode_FromStringAndSize((const char *)value, end - value) : NULL;
    int failed = !text || PyDict_SetDefault(fields, key, text) == NULL;
    Py_XDECREF(key);
    Py_XDECREF(text);
    return failed ? -1 : PyDict_GET_SIZE(fields) > before; /* a name that occurs twice may be damage */
}

/* Returns the body's start behind a plain header block, whose fields it adds; NULL where Python has to read it. */
static const byte *plain_header(PyObject *fields, const byte *at, const byte *end)
{
    if (end - at < 10 || memcmp(at, "WARC/1.", 7) || at[7] < '0' || at[7] > '9' || memcmp(at + 8, "\r\n", 2))
        return NULL;
    for (at += 10;;) {
        const byte *line = memchr(at, '\n', end - at);
        if (!line || line == at || line[-1] != '\r')
            return NULL;
        if (line == at + 1)
            return line + 1;
        if (add_field(fields, at, line - 1) <= 0)
            return NULL;
        at = line + 1;
    }
}

/* Returns the Content-Length of a record that has a type, too; -1 where Python has to find its end. */
static Py_ssize_t plain_length(PyObject *fields, Py_ssize_t most)
{
    PyObject *claimed = PyDict_GetItemString(fields, "content-length");
    Py_ssize_t size;
    uint64_t length = 0;
    const char *digits = claimed ? PyUnicode_AsUTF8AndSize(claimed, &size) : NULL;
    if (!digits || !size || size > 19 || !PyDict_GetItemString(fields, "warc-type"))
        return -1;
    for (const char *each = digits; each < digits + size; each++) {
        if (*each < '0' || *each > '9')
            return -1;
        length = length * 10 + (uint64_t)(*each - '0'); /* of 19 digits at most: no overflow */
    }
    return most >= 0 && length <= (uint64_t)most ? (Py_ssize_t)length : -1;
}

/* Adds the record at `at`, and returns where the next one starts; NULL where there is none that is plain. */
static const byte *add_record(PyObject *records, const byte *at, const byte *end, Py_ssize_t place,
                              Py_ssize_t most_header, Py_ssize_t most_body)
{
    const byte *next = NULL;
    PyObject *record = NULL, *fields = PyDict_New();
    const byte *body = fields ? plain_header(fields, at, end - at < most_header ? end : at + most_header) : NULL;
    Py_ssize_t length = body ? plain_length(fields, most_body) : -1;
    if (length >= 0 && length <= end - body - 11 && !memcmp(body + length, "\r\n\r\nWARC/1.", 11))
        next = body + length + 4; /* else Python has to find out where it starts */
    if (next)
        record = Py_BuildValue("Oy#n", fields, (const char *)body, length, place);
    if (record && PyList_Append(records, record) < 0)
        next = NULL;
    Py_XDECREF(fields);
    Py_XDECREF(record);
    return record ? next : NULL;
}

static PyObject *plain_records(PyObject *Py_UNUSED(unused), PyObject *args)
{
    Py_buffer data;
    Py_ssize_t offset, most_header, most_body;
    if (!PyArg_ParseTuple(args, "y*nnn", &data, &offset, &most_header, &most_body))
        return NULL;
    const byte *start = data.buf, *end = start + data.len, *at = start, *next = start;
    most_header = most_header < 0 ? 0 : most_header;
    PyObject *records = PyList_New(0);
    while (at < end && (*at == '\r' || *at == '\n'))
        at++;
    for (; records && next; at = next ? next : at)
        next = add_record(records, at, end, offset + (at - start), most_header, most_body);
    PyBuffer_Release(&data);
    if (records && PyErr_Occurred())
        Py_CLEAR(records);
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

static PyObject *is_utf8(PyObject *Py_UNUSED(unused), PyObject *given)
{
    Py_buffer data;
    if (PyObject_GetBuffer(given, &data, PyBUF_SIMPLE) < 0)
        return NULL;
    const byte *at = data.buf, *end = at + data.len;
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
    PyBuffer_Release(&data);
    return PyBool_FromLong((state & 63) == WHOLE);
}

PyMethodDef record_functions[] = {
    {"plain_records", plain_records, METH_VARARGS,
     "Returns the plain records at the start of bytes (fields by lower-case name, body, offset) and the size of that, given "
     "the offset of the first byte and the most bytes of a header block and of a body. Python has to read the next one."},
    {"is_utf8", is_utf8, METH_O, "Tells whether bytes are valid UTF-8, as bytes.decode does."},
    {0},
};
