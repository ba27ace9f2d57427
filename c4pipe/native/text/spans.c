/* Hashes of a text's units and of spans of units: text/spans.py is the reference. */

#include "text.h"

/* Writes a unit with single blanks for the white space in it; returns where that ends. */
static byte *fold(byte *to, const byte *at, const byte *end)
{
    while (at < end) {
        Py_ssize_t space = space_at(at, end);
        if (!space) {
            *to++ = *at++;
            continue;
        }
        at = skip_space(at + space, end);
        *to++ = ' ';
    }
    return to;
}

static inline uint64_t rotate(uint64_t value, int by) { return value << by | value >> (64 - by); }

static inline uint64_t stir(uint64_t value)
{
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCDu;
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53u;
    return value ^ value >> 33;
}

/* The lower half of a text's MurmurHash3 (Appleby 2011; x64, 128 bits), as the package mmh3 has it. */
uint64_t murmur(const byte *at, Py_ssize_t size, uint64_t seed)
{
    const uint64_t one = 0x87C37B91114253D5u, two = 0x4CF5AD432745937Fu;
    uint64_t low = seed, high = seed, words[2];
    Py_ssize_t left = size;
    for (; left >= 16; left -= 16, at += 16) {
        memcpy(words, at, 16);
        low = (rotate(low ^ rotate(words[0] * one, 31) * two, 27) + high) * 5 + 0x52DCE729;
        high = (rotate(high ^ rotate(words[1] * two, 33) * one, 31) + low) * 5 + 0x38495AB5;
    }
    memset(words, 0, 16);
    memcpy(words, at, left);
    low ^= rotate(words[0] * one, 31) * two ^ (uint64_t)size;
    high ^= rotate(words[1] * two, 33) * one ^ (uint64_t)size;
    low += high;
    high += low;
    return stir(low) + stir(high);
}

/* The hash of a unit, trimmed, and with `folded` changed in place. */
static uint64_t unit_hash(byte *start, byte *end, int folded)
{
    Piece unit = trim(start, end);
    if (folded)
        unit.size = fold(start + (unit.at - start), unit.at, unit.at + unit.size) - unit.at;
    return murmur(unit.at, unit.size, 0);
}

/* The end of some characters of a text in UTF-8; the end of the text where it has fewer. */
static byte *skip(byte *at, const byte *end, Py_ssize_t characters)
{
    for (uint64_t eight; end - at >= 8 && characters >= 8; at += 8) {
        memcpy(&eight, at, 8);
        characters -= 8 - (Py_ssize_t)((((eight >> 7) & ~(eight >> 6) & ONES) * ONES) >> 56); /* not the bytes that continue */
    }
    for (; at < end && (characters || (*at & 0xC0) == 0x80); at++)
        characters -= (*at & 0xC0) != 0x80;
    return at;
}

static PyObject *unit_hashes(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *text, *starts;
    int folded;
    if (!PyArg_ParseTuple(args, "SO!p", &text, &PyList_Type, &starts, &folded))
        return NULL;
    Piece whole = {(const byte *)PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)};
    byte *made = PyMem_Malloc(whole.size ? whole.size : 1), *at = made, *end = made + whole.size;
    if (!made)
        return PyErr_NoMemory();
    if (PY_BIG_ENDIAN || !write_lower(whole, made)) {
        PyMem_Free(made);
        Py_RETURN_NONE;
    }
    Py_ssize_t count = PyList_GET_SIZE(starts), passed = 0;
    PyObject *hashes = PyBytes_FromStringAndSize(NULL, count * 8);
    for (Py_ssize_t each = 0; hashes && each < count; each++) {
        Py_ssize_t next = each + 1 < count ? PyLong_AsSsize_t(PyList_GET_ITEM(starts, each + 1)) : PY_SSIZE_T_MAX;
        byte *start = at;
        if (next > passed) {
            at = skip(at, end, next - passed);
            passed = next;
        }
        uint64_t hash = unit_hash(start, at, folded);
        memcpy(PyBytes_AS_STRING(hashes) + each * 8, &hash, 8);
        if (PyErr_Occurred())
            Py_CLEAR(hashes);
    }
    PyMem_Free(made);
    return hashes;
}

static PyObject *span_hashes(PyObject *Py_UNUSED(unused), PyObject *args)
{
    Py_buffer hashes;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "y*n", &hashes, &size))
        return NULL;
    Py_ssize_t units = hashes.len / 8, found = size < 1 || size > units ? 0 : units - size + 1;
    PyObject *made = PyBytes_FromStringAndSize(NULL, found * 8);
    for (Py_ssize_t span = 0; made && span < PyBytes_GET_SIZE(made) / 8; span++) {
        uint64_t mixed = 0, unit;
        for (Py_ssize_t each = span; each < span + size; each++) {
            memcpy(&unit, (char *)hashes.buf + each * 8, 8);
            mixed = mix(mixed * 0x9E3779B97F4A7C15u + unit);
        }
        memcpy(PyBytes_AS_STRING(made) + span * 8, &mixed, 8);
    }
    PyBuffer_Release(&hashes);
    return made;
}

PyMethodDef span_functions[] = {
    {"unit_hashes", unit_hashes, METH_VARARGS,
     "Returns the hash of each unit of a text in UTF-8 (starts in characters, the first 0) in lower case, trimmed or with "
     "white space folded; None where Python has to."},
    {"span_hashes", span_hashes, METH_VARARGS, "Returns the hashes of spans of `size` units, from those of the units."},
    {0},
};
