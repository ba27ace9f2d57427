/* Lower case, as str.lower has it. */

#include "text.h"

/* Of U+0000 to U+FFFF what lower_point tells. */
static uint16_t lower_table[0x10000];

/* The lower case of a character, where that takes as much room; 0 where only str.lower knows it. */
static inline Py_UCS4 lower_point(Py_UCS4 each)
{
    return each < 0x10000 ? lower_table[each] : each >= 0x1F000 && each < 0x20000 ? each : 0; /* signs */
}

/* What a character takes as UTF-8 and in a str. */
static int room(Py_UCS4 each) { return each < 0x80 ? 1 : each < 0x100 ? 2 : each < 0x800 ? 3 : 4; }

int learn_lower(void)
{
    for (Py_UCS4 each = 0; each < 0x2000; each += each == 0x7FF ? 0x1601 : 1) {
        PyObject *character = PyUnicode_FromOrdinal(each);
        PyObject *made = character ? PyObject_CallMethod(character, "lower", NULL) : NULL;
        Py_XDECREF(character);
        if (!made)
            return -1;
        Py_UCS4 known = PyUnicode_GET_LENGTH(made) == 1 ? PyUnicode_READ_CHAR(made, 0) : 0;
        if (known && room(known) == room(each) && each != 0x3A3) /* a capital sigma's depends on what is around it */
            lower_table[each] = known;
        Py_DECREF(made);
    }
    for (Py_UCS4 each = 0x800; each < 0x10000; each++) /* punctuation, signs and scripts that have no other case */
        if (each < 0x1000 || (each >= 0x2000 && each < 0x2100) || (each >= 0x2190 && each < 0x2460) ||
            (each >= 0x2500 && each < 0x2C00) || (each >= 0x3000 && each < 0xA000) ||
            (each >= 0xB000 && each < 0xFF00) || each >= 0xFFF0 || each == 0x2122)
            lower_table[each] = each;
    return 0;
}

static PyObject *lower_text(PyObject *Py_UNUSED(unused), PyObject *given)
{
    if (!PyUnicode_Check(given) || PyUnicode_IS_ASCII(given))
        return PyObject_CallMethod(given, "lower", NULL);
    Py_ssize_t length = PyUnicode_GET_LENGTH(given);
    PyObject *made = PyUnicode_New(length, PyUnicode_MAX_CHAR_VALUE(given));
    if (!made)
        return NULL;
    int kind = PyUnicode_KIND(given), unknown = 0;
    const void *from = PyUnicode_DATA(given);
    void *to = PyUnicode_DATA(made);
    for (Py_ssize_t at = 0; at < length; at++) {
        Py_UCS4 known = lower_point(PyUnicode_READ(kind, from, at));
        unknown |= !known;
        PyUnicode_WRITE(kind, to, at, known);
    }
    if (unknown)
        Py_SETREF(made, PyObject_CallMethod(given, "lower", NULL));
    return made;
}

/* Writes the lower case of eight bytes; false where they are not all ASCII. */
static inline int write_lower_eight(const byte *at, byte *to)
{
    uint64_t eight;
    memcpy(&eight, at, 8);
    if (eight & ONES * 0x80)
        return 0;
    uint64_t is_capital = (eight + ONES * (0x80 - 'A')) & ~(eight + ONES * (0x80 - 'Z' - 1)) & ONES * 0x80;
    eight |= is_capital >> 2;
    memcpy(to, &eight, 8);
    return 1;
}

/* Writes the lower case of a text, which has as many bytes; false where only str.lower knows it. */
int write_lower(Piece text, byte *to)
{
    const byte *at = text.at, *end = text.at + text.size;
    while (at < end) {
        for (; end - at >= 8 && write_lower_eight(at, to); at += 8)
            to += 8;
        if (at == end)
            break;
        if (*at < 0x80) {
            *to++ = lower(*at++);
            continue;
        }
        int size = *at < 0xE0 ? 2 : *at < 0xF0 ? 3 : 4;
        Py_UCS4 each = *at & (0xFF >> (size + 1));
        if (end - at < size)
            return 0;
        for (int more = 1; more < size; more++)
            each = each << 6 | (at[more] & 0x3F);
        Py_UCS4 known = lower_point(each);
        if (!known)
            return 0;
        memcpy(to, at, size);
        if (known != each) {
            to[0] = size == 2 ? 0xC0 | known >> 6 : 0xE0 | known >> 12;
            to[1] = 0x80 | (known >> (size == 2 ? 0 : 6) & 0x3F);
            to[size - 1] = 0x80 | (known & 0x3F);
        }
        at += size;
        to += size;
    }
    return 1;
}

PyMethodDef lower_functions[] = {
    {"lower", lower_text, METH_O, "Returns str.lower of a text."},
    {0},
};
