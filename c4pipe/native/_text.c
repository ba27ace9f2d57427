/* What Python would do object by object: usual records (see wet/records.py), the rules on the lines of a page's UTF-8 text
 * (as filters/lines.py and pages.py on str; filters/packed_lines.py says which rule is which step), lower case, hashes of
 * spans, listed words. All of it is optional, and gives what Python gives. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define VERSION 3 /* as in __init__.py */

typedef unsigned char byte;

typedef struct {
    const byte *at;
    Py_ssize_t size;
} Piece;

typedef struct {
    PyObject_HEAD
    Py_buffer body;   /* the text that the pieces point into, in UTF-8 */
    PyObject *edited; /* list of the str that pieces point into since they were edited; NULL before */
    Piece *pieces;
    Py_ssize_t count, room;
    int busy;         /* a function of Python is at work for these lines: nobody else may change them */
} Lines;

/* White space and line ends of Python's str */

/* Bytes of the white space that starts at `at`, 0 where there is none. */
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

/* Which bytes may begin a line end of str.splitlines. */
static byte may_break[256];

static Py_ssize_t characters(Piece piece)
{
    Py_ssize_t found = 0;
    for (Py_ssize_t each = 0; each < piece.size; each++)
        found += (piece.at[each] & 0xC0) != 0x80;
    return found;
}

/* Pieces */

static int add(Lines *self, const byte *start, const byte *end)
{
    while (start < end) {
        Py_ssize_t space = space_at(start, end);
        if (!space)
            break;
        start += space;
    }
    while (start < end) {
        Py_ssize_t space = space_before(start, end);
        if (!space)
            break;
        end -= space;
    }
    if (start == end)
        return 0;
    if (self->count == self->room) {
        Py_ssize_t room = self->room ? self->room * 2 : 64;
        Piece *pieces = PyMem_Realloc(self->pieces, room * sizeof(Piece));
        if (!pieces) {
            PyErr_NoMemory();
            return -1;
        }
        self->pieces = pieces;
        self->room = room;
    }
    self->pieces[self->count].at = start;
    self->pieces[self->count++].size = end - start;
    return 0;
}

/* Whether eight bytes may have one of `may_break`: a control character, or the first byte of another line end. */
static inline int eight_may_break(const byte *at)
{
    const uint64_t ones = 0x0101010101010101u, high = ones << 7;
    uint64_t eight;
    memcpy(&eight, at, 8);
    uint64_t c2 = eight ^ ones * 0xC2, e2 = eight ^ ones * 0xE2;
    return (((eight - ones * 0x20) & ~eight) | ((c2 - ones) & ~c2) | ((e2 - ones) & ~e2)) & high ? 1 : 0;
}

static int cut_everywhere(Lines *self, const byte *start, const byte *end)
{
    const byte *at = start;
    while (at < end) {
        while (end - at >= 8 && !eight_may_break(at))
            at += 8;
        for (const byte *eight = at; at < end && at - eight < 8;) {
            Py_ssize_t size = may_break[*at] ? break_at(at, end) : 0;
            if (size) {
                if (add(self, start, at) < 0)
                    return -1;
                start = at + size;
            }
            at += size ? size : 1;
        }
    }
    return add(self, start, end);
}

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
            if (add(self, start, found) < 0)
                return -1;
            start = found + 1;
        }
        if (add(self, start, line) < 0)
            return -1;
        if (line == end)
            return 0;
        start = line + 1;
    }
}

static PyObject *unpack(Piece piece)
{
    return PyUnicode_DecodeUTF8((const char *)piece.at, piece.size, NULL);
}

static int utf8(PyObject *text, Piece *piece)
{
    piece->at = (const byte *)PyUnicode_AsUTF8AndSize(text, &piece->size);
    return piece->at ? 0 : -1;
}

/* Texts that a rule looks for */

#define MOST_TEXTS 64

typedef struct {
    Piece texts[MOST_TEXTS];
    Py_ssize_t count;
} Texts;

static int read_texts(PyObject *given, Texts *texts)
{
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) > MOST_TEXTS) {
        PyErr_Format(PyExc_TypeError, "a tuple of at most %d texts is needed", MOST_TEXTS);
        return -1;
    }
    texts->count = PyTuple_GET_SIZE(given);
    for (Py_ssize_t each = 0; each < texts->count; each++) {
        if (utf8(PyTuple_GET_ITEM(given, each), &texts->texts[each]) < 0)
            return -1;
        if (!texts->texts[each].size) {
            PyErr_SetString(PyExc_ValueError, "an empty text");
            return -1;
        }
    }
    return 0;
}

static inline int starts_with(Piece piece, const Texts *texts)
{
    for (Py_ssize_t each = 0; each < texts->count; each++) {
        Piece text = texts->texts[each];
        if (piece.size >= text.size && *piece.at == *text.at && !memcmp(piece.at, text.at, text.size))
            return 1;
    }
    return 0;
}

static inline int ends_with(Piece piece, const Texts *texts)
{
    for (Py_ssize_t each = 0; each < texts->count; each++) {
        Piece text = texts->texts[each];
        if (piece.size >= text.size && piece.at[piece.size - 1] == text.at[text.size - 1] &&
            !memcmp(piece.at + piece.size - text.size, text.at, text.size))
            return 1;
    }
    return 0;
}

/* The rules: a program has the steps that a recipe applies one after the other, with their arguments. */

typedef struct Action Action;

typedef struct {
    byte first, second, fold; /* in lower case; what makes the second byte of a text lower case, 0xFF for any byte */
} Pair;

typedef struct {
    const Action *action;
    Py_ssize_t number;
    Texts texts, others;
    PyObject *function;
    Pair pairs[MOST_TEXTS + 2]; /* each text that has a phrase has one of them */
    Py_ssize_t pair_count, longest;
    uint64_t starts[256];       /* by a byte: a bit for each phrase that may start with it */
} Step;

enum { ERROR = -1, KEPT, DROPPED, EDITED };

/* One of three functions does what a step does: tells what becomes of a line, whether the page is dropped, or whether
 * the lines are others now. Without any of them the step counts lines. */
struct Action {
    const char *name, *needs; /* a letter for each argument: n a number, t texts, p phrases, f a function of Python */
    int (*judge)(Lines *, Piece *, const Step *);
    int (*drops)(Lines *, const Step *);
    int (*change)(Lines *);
};

static int judge_start(Lines *Py_UNUSED(self), Piece *piece, const Step *step)
{
    return starts_with(*piece, &step->texts) ? DROPPED : KEPT;
}

static int judge_long_words(Lines *Py_UNUSED(self), Piece *piece, const Step *step)
{
    Py_ssize_t length = 0;
    if (piece->size <= step->number)
        return KEPT;
    const byte *end = piece->at + piece->size;
    for (const byte *at = piece->at; at < end;) {
        Py_ssize_t space = space_at(at, end);
        if (space) {
            length = 0;
            at += space;
        } else {
            length += (*at & 0xC0) != 0x80;
            if (length > step->number)
                return DROPPED;
            at++;
        }
    }
    return KEPT;
}

static int judge_ending(Lines *Py_UNUSED(self), Piece *piece, const Step *step)
{
    return ends_with(*piece, &step->texts) && !ends_with(*piece, &step->others) ? KEPT : DROPPED;
}

static int judge_few_words(Lines *Py_UNUSED(self), Piece *piece, const Step *step)
{
    Py_ssize_t found = 0;
    const byte *end = piece->at + piece->size;
    int inside = 0;
    for (const byte *at = piece->at; at < end && found < step->number;) {
        Py_ssize_t space = space_at(at, end);
        found += !space && !inside;
        inside = !space;
        at += space ? space : 1;
    }
    return found >= step->number ? KEPT : DROPPED;
}

/* Puts a line that has a [ through a function. */
static int judge_brackets(Lines *self, Piece *piece, const Step *step)
{
    if (!memchr(piece->at, '[', piece->size))
        return KEPT;
    Piece before = *piece;
    PyObject *line = unpack(before);
    PyObject *made = line && (self->edited || (self->edited = PyList_New(0)))
                         ? PyObject_CallOneArg(step->function, line)
                         : NULL;
    Py_XDECREF(line);
    if (!made)
        return ERROR;
    int failed = utf8(made, piece) < 0 || PyList_Append(self->edited, made) < 0;
    if (failed)
        *piece = before;
    Py_DECREF(made); /* the list has it */
    if (failed)
        return ERROR;
    return piece->size != before.size || memcmp(piece->at, before.at, before.size) ? EDITED : KEPT;
}

/* Phrases: ASCII, searched in the lower case of a text. Two other characters have ASCII in their lower case: that of
 * U+212A is k, and that of U+0130 is i and an accent. */

static inline byte lower(byte each) { return each >= 'A' && each <= 'Z' ? each + 32 : each; }

static inline byte upper(byte each) { return each >= 'a' && each <= 'z' ? each - 32 : each; }

static int matches(const byte *at, const byte *end, Piece phrase)
{
    for (Py_ssize_t each = 0; each < phrase.size; each++) {
        byte wanted = phrase.at[each];
        if (at < end && lower(*at) == wanted)
            at++;
        else if (wanted == 'k' && end - at >= 3 && !memcmp(at, "\xE2\x84\xAA", 3))
            at += 3;
        else if (wanted == 'i' && each + 1 == phrase.size && end - at >= 2 && !memcmp(at, "\xC4\xB0", 2))
            at += 2;
        else
            return 0;
    }
    return 1;
}

#define BLOCK 64

/* Whether one of the pairs begins in a block: without branches, for the compiler to look at many bytes at once. */
static int may_have_phrase(const byte *block, const Step *step)
{
    byte any = 0;
    for (Py_ssize_t each = 0; each < step->pair_count; each++) {
        Pair pair = step->pairs[each];
        for (int at = 0; at < BLOCK; at++)
            any |= (byte)((block[at] | 32) == pair.first) & (byte)((block[at + 1] | pair.fold) == pair.second);
    }
    return any;
}

static int has_phrase(const Lines *self, Piece piece, const Step *step)
{
    const byte *end = piece.at + piece.size, *body = self->body.buf, *readable = body + self->body.len;
    byte last[BLOCK + 1];
    if ((uintptr_t)piece.at < (uintptr_t)body || (uintptr_t)end > (uintptr_t)readable)
        readable = end; /* an edited line */
    for (const byte *at = piece.at; at < end; at += BLOCK) {
        const byte *next = end - at > BLOCK ? at + BLOCK : end, *block = at;
        if (readable - at <= BLOCK) {
            memset(last, 0, sizeof last);
            block = memcpy(last, at, end - at);
        }
        if (!may_have_phrase(block, step))
            continue;
        /* The phrase may begin before the block that has its pair. */
        for (const byte *each = at - piece.at > step->longest ? at - step->longest : piece.at; each < next; each++)
            for (uint64_t left = step->starts[*each]; left; left &= left - 1)
                if (matches(each, end, step->texts.texts[__builtin_ctzll(left)]))
                    return 1;
    }
    return 0;
}

static int judge_phrases(Lines *self, Piece *piece, const Step *step)
{
    return has_phrase(self, *piece, step) ? DROPPED : KEPT;
}

static void add_pair(Step *step, byte first, byte second, byte fold)
{
    Pair pair = {first | 32, second | fold, fold};
    for (Py_ssize_t each = 0; each < step->pair_count; each++)
        if (!memcmp(&step->pairs[each], &pair, sizeof pair))
            return;
    step->pairs[step->pair_count++] = pair;
}

/* How rare a letter is in English, a rough guess: a search is fast where it seldom has to look twice. */
static int rarity(byte each)
{
    const char *letters = " etaoinsrhldcumfpgwybvkxjqz", *found = each ? strchr(letters, each) : NULL;
    return found ? (int)(found - letters) : 27;
}

static int read_phrases(PyObject *given, Step *step)
{
    if (read_texts(given, &step->texts) < 0)
        return -1;
    for (Py_ssize_t each = 0; each < step->texts.count; each++) {
        Piece phrase = step->texts.texts[each];
        Py_ssize_t rarest = 0, longest = 3 * phrase.size; /* U+212A has three bytes */
        for (Py_ssize_t at = 0; at < phrase.size; at++) {
            byte here = phrase.at[at];
            if (here >= 0x80 || here != lower(here)) {
                PyErr_SetString(PyExc_ValueError, "a phrase of ASCII in lower case is needed");
                return -1;
            }
            if (at + 1 < phrase.size && rarity(here) + rarity(phrase.at[at + 1]) >
                                            rarity(phrase.at[rarest]) + rarity(phrase.at[rarest + 1]))
                rarest = at;
            if (here == 'k')
                add_pair(step, 0xE2, 0x84, 32);
            if (here == 'i' && at + 1 == phrase.size)
                add_pair(step, 0xC4, 0xB0, 32);
        }
        step->longest = longest > step->longest ? longest : step->longest;
        uint64_t bit = (uint64_t)1 << each;
        step->starts[*phrase.at] |= bit;
        step->starts[upper(*phrase.at)] |= bit;
        if (*phrase.at == 'k')
            step->starts[0xE2] |= bit;
        if (*phrase.at == 'i')
            step->starts[0xC4] |= bit;
        add_pair(step, phrase.at[rarest], phrase.size > 1 ? phrase.at[rarest + 1] : 0xFF, phrase.size > 1 ? 32 : 0xFF);
    }
    return 0;
}

static int drops_phrase(Lines *self, const Step *step)
{
    for (Py_ssize_t each = 0; each < self->count; each++)
        if (has_phrase(self, self->pieces[each], step))
            return 1;
    return 0;
}

static int drops_phrase_of_body(Lines *self, const Step *step)
{
    return has_phrase(self, (Piece){self->body.buf, self->body.len}, step);
}

static Py_ssize_t count_characters(const Lines *self)
{
    Py_ssize_t found = self->count ? self->count - 1 : 0;
    for (Py_ssize_t each = 0; each < self->count; each++)
        found += characters(self->pieces[each]);
    return found;
}

static int drops_long(Lines *self, const Step *step)
{
    Py_ssize_t size = self->count;
    for (Py_ssize_t each = 0; each < self->count; each++)
        size += self->pieces[each].size;
    return size > step->number && count_characters(self) > step->number;
}

static int drops_empty(Lines *self, const Step *Py_UNUSED(step)) { return !self->count; }

/* Whether there is a line end, one of \n and \r only if they count. A block that can't have one is passed without
 * branches, for the compiler to look at many bytes at once. */
static int has_break(Piece piece, int newlines)
{
    const byte *end = piece.at + piece.size, first = newlines ? 10 : 11, several = newlines ? 4 : 2;
    for (const byte *at = piece.at; at < end;) {
        const byte *next = end - at > BLOCK ? at + BLOCK : end;
        byte any = 0;
        for (const byte *each = at; each < next; each++)
            any |= ((byte)(*each - first) < several) | ((byte)(*each - 28) < 3) | (*each == 0xC2) | (*each == 0xE2);
        for (; any && at < next; at++)
            if (may_break[*at] && break_at(at, end) && (newlines || (*at != '\n' && *at != '\r')))
                return 1;
        at = next;
    }
    return 0;
}

static int resplit(Lines *self)
{
    Lines again = {.count = 0};
    Py_ssize_t whole = 0;
    if (!self->edited && !has_break((Piece){self->body.buf, self->body.len}, 0))
        return 0; /* the lines were cut at \n and \r */
    while (whole < self->count && !has_break(self->pieces[whole], 1))
        whole++;
    if (whole == self->count)
        return 0;
    for (Py_ssize_t each = 0; each < self->count; each++) {
        Piece piece = self->pieces[each];
        if (cut_everywhere(&again, piece.at, piece.at + piece.size) < 0) {
            PyMem_Free(again.pieces);
            return ERROR;
        }
    }
    PyMem_Free(self->pieces);
    self->pieces = again.pieces;
    self->count = again.count;
    self->room = again.room;
    return 1;
}

static int trim_start(Lines *self)
{
    int changed = 0;
    while (self->count && self->pieces[0].size) {
        Py_ssize_t space = space_at(self->pieces[0].at, self->pieces[0].at + self->pieces[0].size);
        if (!space)
            break;
        self->pieces[0].at += space;
        self->pieces[0].size -= space;
        changed = 1;
    }
    return changed;
}

static const Action actions[] = {
    {"drop_starts", "t", .judge = judge_start},
    {"drop_long_words", "n", .judge = judge_long_words},
    {"edit_brackets", "f", .judge = judge_brackets},
    {"keep_endings", "tt", .judge = judge_ending},
    {"drop_few_words", "n", .judge = judge_few_words},
    {"drop_phrases", "p", .judge = judge_phrases},
    {"has_phrase", "p", .drops = drops_phrase},
    {"body_has_phrase", "p", .drops = drops_phrase_of_body},
    {"exceeds", "n", .drops = drops_long},
    {"is_empty", "", .drops = drops_empty},
    {"resplit", "", .change = resplit},
    {"trim_start", "", .change = trim_start},
    {"count", "", .judge = NULL},
};

/* Programs */

#define PROGRAM "c4pipe.native._text.program"
#define MOST_STEPS 64

typedef struct {
    PyObject *given; /* has the texts and functions of the steps */
    Py_ssize_t count;
    Step steps[];
} Program;

static int read_step(PyObject *given, Step *step)
{
    Py_ssize_t size = PyTuple_Check(given) ? PyTuple_GET_SIZE(given) : 0;
    for (size_t each = 0; size && each < sizeof actions / sizeof *actions; each++)
        if (PyUnicode_Check(PyTuple_GET_ITEM(given, 0)) &&
            !PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(given, 0), actions[each].name))
            step->action = &actions[each];
    if (!step->action || (size_t)size != strlen(step->action->needs) + 1) {
        PyErr_Format(PyExc_ValueError, "no step of a program: %R", given);
        return -1;
    }
    for (Py_ssize_t each = 1; each < size; each++) {
        PyObject *argument = PyTuple_GET_ITEM(given, each);
        char kind = step->action->needs[each - 1];
        step->number = kind == 'n' ? PyLong_AsSsize_t(argument) : step->number;
        step->function = kind == 'f' ? argument : step->function;
        if ((kind == 'n' && PyErr_Occurred()) ||
            (kind == 't' && read_texts(argument, each == 1 ? &step->texts : &step->others) < 0) ||
            (kind == 'p' && read_phrases(argument, step) < 0))
            return -1;
    }
    return 0;
}

static void free_program(PyObject *capsule)
{
    Program *program = PyCapsule_GetPointer(capsule, PROGRAM);
    Py_DECREF(program->given);
    PyMem_Free(program);
}

static PyObject *program(PyObject *Py_UNUSED(unused), PyObject *given)
{
    Py_ssize_t count = PyTuple_Check(given) ? PyTuple_GET_SIZE(given) : MOST_STEPS + 1;
    if (count > MOST_STEPS) {
        PyErr_Format(PyExc_TypeError, "a tuple of at most %d steps is needed", MOST_STEPS);
        return NULL;
    }
    Program *self = PyMem_Calloc(1, sizeof *self + count * sizeof(Step));
    if (!self)
        return PyErr_NoMemory();
    self->given = given;
    for (; self->count < count; self->count++)
        if (read_step(PyTuple_GET_ITEM(given, self->count), &self->steps[self->count]) < 0)
            break;
    PyObject *capsule = self->count == count ? PyCapsule_New(self, PROGRAM, free_program) : NULL;
    if (capsule)
        Py_INCREF(given);
    else
        PyMem_Free(self);
    return capsule;
}

/* Applies rules of lines to each line, one rule after the other, and adds to `taken` how many lines each dropped or
 * edited; -1 after an error, where the line with the error and those after it are kept. */
static int judge_lines(Lines *self, const Step *steps, Py_ssize_t count, Py_ssize_t *taken)
{
    Py_ssize_t kept = 0, done = 0;
    int judged = KEPT;
    for (; done < self->count; done++) {
        Piece piece = self->pieces[done];
        judged = KEPT;
        for (Py_ssize_t each = 0; each < count && (judged == KEPT || judged == EDITED); each++) {
            judged = steps[each].action->judge(self, &piece, &steps[each]);
            taken[each] += judged > KEPT;
        }
        if (judged == ERROR)
            break;
        if (judged != DROPPED)
            self->pieces[kept++] = piece;
    }
    if (kept < done)
        memmove(self->pieces + kept, self->pieces + done, (self->count - done) * sizeof(Piece));
    self->count -= done - kept;
    return judged == ERROR ? -1 : 0;
}

static PyObject *run(Lines *self, PyObject *given)
{
    const Program *program = PyCapsule_GetPointer(given, PROGRAM);
    Py_ssize_t taken[MOST_STEPS] = {0}, judges = 0, sum = 0, read = -1, dropped_by = -1;
    int answer = 0, has_changed = 0;
    if (!program)
        return NULL;
    if (self->busy) {
        PyErr_SetString(PyExc_RuntimeError, "the lines can't be changed by a function that they call");
        return NULL;
    }
    self->busy = 1;
    for (Py_ssize_t each = 0; each < program->count && dropped_by < 0 && answer >= 0; each++) {
        const Step *step = &program->steps[each];
        Py_ssize_t last = each;
        if (step->action->judge) {
            while (last + 1 < program->count && program->steps[last + 1].action->judge)
                last++;
            answer = judge_lines(self, step, last - each + 1, taken + judges);
            for (; each < last; each++)
                sum += taken[judges++];
            sum += taken[judges++];
        } else if (step->action->drops) {
            dropped_by = step->action->drops(self, step) ? each : -1;
        } else if (step->action->change) {
            answer = step->action->change(self);
            has_changed |= answer > 0;
        } else {
            read = self->count + sum;
        }
    }
    self->busy = 0;
    PyObject *changes = answer < 0 ? NULL : PyTuple_New(judges);
    for (Py_ssize_t each = 0; changes && each < judges; each++) {
        PyObject *number = PyLong_FromSsize_t(taken[each]);
        if (number)
            PyTuple_SET_ITEM(changes, each, number);
        else
            Py_CLEAR(changes);
    }
    return changes ? Py_BuildValue("nnNO", dropped_by, read, changes, has_changed || sum ? Py_True : Py_False) : NULL;
}

/* What is left */

static PyObject *unpacked(Lines *self, PyObject *Py_UNUSED(unused))
{
    PyObject *lines = PyList_New(self->count);
    for (Py_ssize_t each = 0; lines && each < self->count; each++) {
        PyObject *line = unpack(self->pieces[each]);
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

static PyObject *lines_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(unused))
{
    Py_buffer body;
    int everywhere;
    if (!PyArg_ParseTuple(args, "s*p", &body, &everywhere))
        return NULL;
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
    return (PyObject *)self;
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

static PyMethodDef methods[] = {
    {"run", (PyCFunction)run, METH_O,
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

static PyType_Spec lines_type = {"c4pipe.native._text.Lines", sizeof(Lines), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, lines_slots};

/* Lower case */

/* Of U+0000 to U+FFFF what lower_point tells. */
static uint16_t lower_table[0x10000];

/* The lower case of a character, where that takes as much room; 0 where only str.lower knows it. */
static inline Py_UCS4 lower_point(Py_UCS4 each)
{
    if (each < 0x10000)
        return lower_table[each];
    return each >= 0x1F000 && each < 0x20000 ? each : 0; /* signs */
}

static int learn_lower(void)
{
    for (Py_UCS4 each = 0; each < 0x2000; each += each == 0x7FF ? 0x1601 : 1) {
        /* the range of those that take as much room */
        Py_UCS4 first = each < 0x80 ? 0 : each < 0x100 ? 0x80 : each < 0x800 ? 0x100 : 0x1E00;
        Py_UCS4 behind = each < 0x80 ? 0x80 : each < 0x100 ? 0x100 : each < 0x800 ? 0x800 : 0x2000;
        PyObject *character = PyUnicode_FromOrdinal(each);
        PyObject *made = character ? PyObject_CallMethod(character, "lower", NULL) : NULL;
        Py_XDECREF(character);
        if (!made)
            return -1;
        Py_UCS4 known = PyUnicode_GET_LENGTH(made) == 1 ? PyUnicode_READ_CHAR(made, 0) : 0;
        if (known >= first && known < behind && each != 0x3A3) /* a capital sigma's depends on what is around it */
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

static const uint64_t ONES = 0x0101010101010101u;

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
static int write_lower(Piece text, byte *to)
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

/* Units and their spans: see filters/spans.py */

/* Writes a unit with single blanks for the white space in it; returns where that ends. */
static byte *fold(byte *to, const byte *at, const byte *end)
{
    while (at < end) {
        Py_ssize_t space = space_at(at, end);
        if (!space) {
            *to++ = *at++;
            continue;
        }
        for (; at < end && (space = space_at(at, end)); at += space)
            ;
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
static uint64_t murmur(const byte *at, Py_ssize_t size)
{
    const uint64_t one = 0x87C37B91114253D5u, two = 0x4CF5AD432745937Fu;
    uint64_t low = 0, high = 0, words[2];
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

/* The hash of a unit, trimmed or folded; it is changed in place. */
static uint64_t unit_hash(byte *at, byte *end, int folded)
{
    Py_ssize_t space;
    while (at < end && (space = space_at(at, end)))
        at += space;
    while (at < end && (space = space_before(at, end)))
        end -= space;
    if (folded)
        end = fold(at, at, end);
    return murmur(at, end - at);
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

static inline uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
    value = (value ^ value >> 27) * 0x94D049BB133111EBu;
    return value ^ value >> 31;
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

/* N-grams of words: see filters/repetition.py */

typedef struct {
    uint32_t hash, first; /* one half of the hash; behind the first word of the first such n-gram, 0 in a free slot */
} Slot;

typedef struct {
    const byte *text;  /* the words with nothing between them, `width` bytes a character */
    int64_t *ends;     /* 0, and the end of each word, in characters */
    Py_ssize_t words;
    int width;
    Slot *slots;
    size_t mask;       /* of slots, a power of two less one */
    uint64_t seed;
} Ngrams;

/* Copies the ends of words, after a look whether they are those of `joined`; NULL after an error. */
static int64_t *read_ends(PyObject *joined, Py_buffer given, Py_ssize_t *words)
{
    Py_ssize_t count = given.len / sizeof(int64_t);
    int64_t *ends = PyMem_Malloc((count + 1) * sizeof(int64_t));
    if (!ends) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(ends, given.buf, count * sizeof(int64_t));
    int is_valid = count > 0 && count <= UINT32_MAX && !ends[0] && ends[count - 1] == PyUnicode_GET_LENGTH(joined);
    for (Py_ssize_t each = 1; is_valid && each < count; each++)
        is_valid = ends[each - 1] <= ends[each];
    if (!is_valid) {
        PyErr_SetString(PyExc_ValueError, "the ends are not those of words of the text");
        PyMem_Free(ends);
        return NULL;
    }
    *words = count - 1;
    return ends;
}

/* Whoever writes a page can't know the seed, so can't write n-grams that have one hash. Releases `ends`. */
static int read_ngrams(PyObject *joined, Py_buffer ends, Ngrams *self)
{
    memset(self, 0, sizeof *self);
    self->ends = read_ends(joined, ends, &self->words);
    PyBuffer_Release(&ends);
    if (!self->ends)
        return -1;
    self->text = PyUnicode_DATA(joined);
    self->width = PyUnicode_KIND(joined);
    self->seed = (uint64_t)PyObject_Hash(joined);
    self->mask = 15;
    while (self->mask < 2 * (size_t)self->words)
        self->mask = 2 * self->mask + 1;
    self->slots = PyMem_Calloc(self->mask + 1, sizeof(Slot));
    if (!self->slots)
        PyErr_NoMemory();
    return self->slots ? 0 : -1;
}

static void free_ngrams(Ngrams *self)
{
    PyMem_Free(self->ends);
    PyMem_Free(self->slots);
}

static inline Py_ssize_t ngram_length(const Ngrams *self, Py_ssize_t place, Py_ssize_t size)
{
    return self->ends[place + size] - self->ends[place];
}

/* Whether two n-grams are equal as texts, and with `cuts` also word by word. */
static int same_ngram(const Ngrams *self, Py_ssize_t first, Py_ssize_t second, Py_ssize_t size, int cuts)
{
    Py_ssize_t length = ngram_length(self, first, size);
    if (length != ngram_length(self, second, size) ||
        memcmp(self->text + self->ends[first] * self->width, self->text + self->ends[second] * self->width,
               length * self->width))
        return 0;
    for (Py_ssize_t each = 1; cuts && each < size; each++)
        if (ngram_length(self, first, each) != ngram_length(self, second, each))
            return 0;
    return 1;
}

/* The hash of characters from the start of a word on, not yet mixed for the last time. */
static inline uint64_t hash_from(const Ngrams *self, Py_ssize_t place, Py_ssize_t characters)
{
    const byte *at = self->text + self->ends[place] * self->width;
    Py_ssize_t bytes = characters * self->width, done = 0;
    uint64_t hash = self->seed ^ (uint64_t)bytes, more = 0;
    for (; done + 8 < bytes; done += 8) {
        memcpy(&more, at + done, 8);
        hash = mix(hash ^ more);
    }
    if (bytes >= 8)
        memcpy(&more, at + bytes - 8, 8);
    else
        for (; done < bytes; done++)
            more = more << 8 | at[done];
    return hash ^ more;
}

/* Returns the place of the first n-gram that is equal to the one at `place`, of those that were asked for. */
static Py_ssize_t first_ngram(Ngrams *self, Py_ssize_t place, Py_ssize_t size, int cuts)
{
    uint64_t hash = hash_from(self, place, ngram_length(self, place, size));
    for (Py_ssize_t each = 1; cuts && each < size; each++)
        hash = (hash + ngram_length(self, place, each)) * 0x9E3779B97F4A7C15u;
    hash = mix(hash);
    for (size_t slot = hash & self->mask;; slot = (slot + 1) & self->mask) {
        Slot *found = &self->slots[slot];
        if (!found->first) {
            found->hash = hash >> 32;
            found->first = place + 1;
            return place;
        }
        if (found->hash == hash >> 32 && same_ngram(self, found->first - 1, place, size, cuts))
            return found->first - 1;
    }
}

static PyObject *top_ngram(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *joined;
    Py_buffer ends;
    Ngrams self;
    Py_ssize_t size, top = 0, characters = 0;
    if (!PyArg_ParseTuple(args, "Uy*n", &joined, &ends, &size))
        return NULL;
    int failed = read_ngrams(joined, ends, &self) < 0;
    uint32_t *counts = failed ? NULL : PyMem_Calloc(self.words + 1, sizeof(uint32_t));
    if (!failed && !counts) {
        PyErr_NoMemory();
        failed = 1;
    }
    for (Py_ssize_t place = 0; !failed && size > 0 && place <= self.words - size; place++) {
        Py_ssize_t first = first_ngram(&self, place, size, 1);
        uint32_t count = ++counts[first];
        if (count > counts[top] || (count == counts[top] && first < top))
            top = first;
    }
    if (!failed && counts[top])
        characters = (ngram_length(&self, top, size) + size - 1) * counts[top];
    PyMem_Free(counts);
    free_ngrams(&self);
    return failed ? NULL : PyLong_FromSsize_t(characters);
}

#define START 12 /* characters */

/* A look at each place once, for all sizes: most n-grams begin as no other one does, so no other one is equal. */
static PyObject *shared_starts(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *joined;
    Py_buffer ends;
    Ngrams self;
    if (!PyArg_ParseTuple(args, "Uy*", &joined, &ends))
        return NULL;
    int failed = read_ngrams(joined, ends, &self) < 0;
    PyObject *made = failed ? NULL : PyBytes_FromStringAndSize(NULL, self.words);
    byte *shared = made ? (byte *)PyBytes_AS_STRING(made) : NULL;
    for (Py_ssize_t place = 0; made && place < self.words; place++) {
        shared[place] = self.ends[self.words] - self.ends[place] < START;
        if (shared[place])
            continue;
        uint64_t hash = mix(hash_from(&self, place, START));
        size_t slot = hash & self.mask;
        while (self.slots[slot].first && self.slots[slot].hash != hash >> 32)
            slot = (slot + 1) & self.mask;
        if (self.slots[slot].first) {
            shared[place] = shared[self.slots[slot].first - 1] = 1;
        } else {
            self.slots[slot].hash = hash >> 32;
            self.slots[slot].first = place + 1;
        }
    }
    free_ngrams(&self);
    return made;
}

static PyObject *repeated_ngrams(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *joined, *shared;
    Py_buffer ends;
    Ngrams self;
    Py_ssize_t size, characters = 0;
    if (!PyArg_ParseTuple(args, "Uy*nS", &joined, &ends, &size, &shared))
        return NULL;
    int failed = read_ngrams(joined, ends, &self) < 0;
    if (!failed && PyBytes_GET_SIZE(shared) != self.words) {
        PyErr_SetString(PyExc_ValueError, "the shared starts are not those of the words");
        failed = 1;
    }
    for (Py_ssize_t place = 0; !failed && size > 0 && place <= self.words - size;) {
        int is_alone = !PyBytes_AS_STRING(shared)[place] && ngram_length(&self, place, size) >= START;
        int is_repeat = !is_alone && first_ngram(&self, place, size, 0) < place;
        characters += is_repeat ? ngram_length(&self, place, size) : 0;
        place += is_repeat ? size : 1;
    }
    free_ngrams(&self);
    return failed ? NULL : PyLong_FromSsize_t(characters);
}

/* What words consist of: see filters/word_statistics.py */

static PyObject *count_words(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *joined, *punctuation;
    Py_buffer given;
    Py_ssize_t with_letter = 0, with_more = 0, characters = 0, words = 0;
    if (!PyArg_ParseTuple(args, "Uy*U", &joined, &given, &punctuation))
        return NULL;
    int64_t *ends = read_ends(joined, given, &words);
    PyBuffer_Release(&given);
    if (!ends)
        return NULL;
    int kind = PyUnicode_KIND(joined);
    const void *text = PyUnicode_DATA(joined);
    Py_ssize_t marks = PyUnicode_GET_LENGTH(punctuation);
    byte is_mark[128]; /* of ASCII; others are looked up */
    for (Py_UCS4 character = 0; character < 128; character++)
        is_mark[character] = PyUnicode_FindChar(punctuation, character, 0, marks, 1) >= 0;
    for (Py_ssize_t each = 0; each < words; each++) {
        int has_letter = 0, is_mixed = 0, is_alphanumeric = 1;
        for (int64_t at = ends[each]; at < ends[each + 1] && !(has_letter && is_mixed); at++) {
            Py_UCS4 character = PyUnicode_READ(kind, text, at);
            int is_letter = Py_UNICODE_ISALPHA(character);
            has_letter |= is_letter;
            is_alphanumeric &= is_letter || Py_UNICODE_ISALNUM(character);
            is_mixed |= character < 128 ? !is_mark[character]
                                        : PyUnicode_FindChar(punctuation, character, 0, marks, 1) == -1;
        }
        int64_t length = ends[each + 1] - ends[each];
        int has_more = length && (is_mixed || is_alphanumeric);
        with_letter += has_letter;
        with_more += has_more;
        characters += has_more ? length : 0;
    }
    PyMem_Free(ends);
    return Py_BuildValue("nnn", with_letter, with_more, characters);
}

static PyObject *words_among(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *joined, *given;
    Py_buffer buffer;
    Py_ssize_t words = 0, found = 0, at, same;
    if (!PyArg_ParseTuple(args, "Uy*O!", &joined, &buffer, &PyTuple_Type, &given))
        return NULL;
    int64_t *ends = read_ends(joined, buffer, &words);
    PyBuffer_Release(&buffer);
    if (!ends)
        return NULL;
    int kind = PyUnicode_KIND(joined), failed = 0;
    const void *text = PyUnicode_DATA(joined);
    for (Py_ssize_t each = 0; !failed && each < PyTuple_GET_SIZE(given); each++) {
        PyObject *word = PyTuple_GET_ITEM(given, each);
        failed = !PyUnicode_Check(word);
        Py_ssize_t length = failed ? -1 : PyUnicode_GET_LENGTH(word);
        for (at = 0, same = -1; at < words && same != length && !failed; at++)
            if (ends[at + 1] - ends[at] == length)
                for (same = 0; same < length; same++)
                    if (PyUnicode_READ(kind, text, ends[at] + same) != PyUnicode_READ_CHAR(word, same))
                        break;
        found += same == length;
    }
    PyMem_Free(ends);
    if (!failed)
        return PyLong_FromSsize_t(found);
    PyErr_SetString(PyExc_TypeError, "a tuple of str is needed");
    return NULL;
}

/* Words that a text may have: see filters/bad_words.py */

#define LONGEST_WORD 64

typedef struct {
    PyObject_HEAD
    PyObject *words;      /* tuple of str */
    Piece *table;         /* the words by their hash; at is NULL where there is none */
    Py_ssize_t *index;    /* where each is in `words` */
    size_t mask;          /* of places in the table, a power of two less one */
    Py_ssize_t longest;
    uint32_t sizes[1 << 12]; /* by six bits of its first and its last character: a bit for each size of a word */
} Words;

static inline uint64_t step(uint64_t hash, byte each) { return (hash ^ each) * 0x100000001B3u; }

/* FNV-1a, stirred: its low bits alone decide the place */
static size_t place_of(const Words *self, Piece word, uint64_t hash)
{
    size_t place = mix(hash) & self->mask;
    while (self->table[place].at &&
           (self->table[place].size != word.size || memcmp(self->table[place].at, word.at, word.size)))
        place = (place + 1) & self->mask;
    return place;
}

static inline uint32_t *sizes_of(Words *self, Py_UCS4 first, Py_UCS4 last)
{
    return &self->sizes[(first & 63) << 6 | (last & 63)];
}

static PyObject *words_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(unused))
{
    PyObject *words;
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &words))
        return NULL;
    Words *self = (Words *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->words = Py_NewRef(words);
    self->mask = 15;
    while (self->mask < 4 * (size_t)PyTuple_GET_SIZE(words))
        self->mask = 2 * self->mask + 1;
    self->table = PyMem_Calloc(self->mask + 1, sizeof(Piece));
    self->index = PyMem_Calloc(self->mask + 1, sizeof(Py_ssize_t));
    if (!self->table || !self->index) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t each = 0; each < PyTuple_GET_SIZE(words); each++) {
        Piece word;
        uint64_t hash = 0;
        if (utf8(PyTuple_GET_ITEM(words, each), &word) < 0) {
            Py_DECREF(self);
            return NULL;
        }
        if (word.size > LONGEST_WORD) {
            PyErr_Format(PyExc_ValueError, "a word of more than %d letters", LONGEST_WORD);
            Py_DECREF(self);
            return NULL;
        }
        if (!word.size || !PyUnicode_IS_ASCII(PyTuple_GET_ITEM(words, each))) {
            PyErr_SetString(PyExc_ValueError, "a word of ASCII is needed");
            Py_DECREF(self);
            return NULL;
        }
        for (Py_ssize_t at = 0; at < word.size; at++)
            hash = step(hash, word.at[at]);
        size_t place = place_of(self, word, hash);
        *sizes_of(self, word.at[0], word.at[word.size - 1]) |= (uint32_t)1 << (word.size & 31);
        self->table[place] = word;
        self->index[place] = each;
        self->longest = word.size > self->longest ? word.size : self->longest;
    }
    return (PyObject *)self;
}

static void words_dealloc(Words *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyMem_Free(self->table);
    PyMem_Free(self->index);
    Py_XDECREF(self->words);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

/* A bit for each of up to 64 characters, the lowest for the first: whether it is in a word of ASCII. Without branches,
 * for the compiler to look at many at once. */
static inline uint64_t word_bits(int kind, const void *text, Py_ssize_t at, Py_ssize_t count)
{
    byte each[BLOCK] = {0};
    uint64_t bits = 0, eight;
    for (Py_ssize_t place = 0; place < count; place++) {
        Py_UCS4 character = PyUnicode_READ(kind, text, at + place);
        each[place] = character < 0x80 ? character : 0;
    }
    for (int place = 0; place < BLOCK; place++)
        each[place] = ((byte)((each[place] | 32) - 'a') < 26) | ((byte)(each[place] - '0') < 10) | (each[place] == '_');
    for (int place = 0; place < BLOCK; place += 8) {
        memcpy(&eight, each + place, 8);
        eight = PY_BIG_ENDIAN ? __builtin_bswap64(eight) : eight;
        bits |= (eight * 0x0102040810204080u >> 56) << place; /* the lowest bits of eight bytes side by side */
    }
    return bits;
}

/* Adds the listed word that a word of a text is, if it is one; -1 after an error. */
static int add_word(Words *self, PyObject *found, int kind, const void *text, Py_ssize_t start, Py_ssize_t size)
{
    byte letters[LONGEST_WORD];
    Piece word = {letters, size};
    uint64_t hash = 0;
    if (size > self->longest)
        return 0;
    for (Py_ssize_t each = 0; each < size; each++)
        hash = step(hash, letters[each] = PyUnicode_READ(kind, text, start + each));
    size_t place = place_of(self, word, hash);
    return self->table[place].at ? PySet_Add(found, PyTuple_GET_ITEM(self->words, self->index[place])) : 0;
}

/* Adds the words that a text has; -1 after an error. */
static inline int add_words(Words *self, PyObject *found, int kind, const void *text, Py_ssize_t length)
{
    Py_ssize_t start = 0;
    uint64_t inside = 0; /* 1 where a word began before a block */
    for (Py_ssize_t at = 0; at <= length; at += BLOCK) { /* a word ends behind the last character at the latest */
        uint64_t bits = length - at >= BLOCK ? word_bits(kind, text, at, BLOCK) : word_bits(kind, text, at, length - at);
        for (uint64_t changes = bits ^ (bits << 1 | inside); changes; changes &= changes - 1) {
            Py_ssize_t here = at + __builtin_ctzll(changes);
            inside = !inside;
            if (inside) {
                start = here;
                continue;
            }
            uint32_t sizes = *sizes_of(self, PyUnicode_READ(kind, text, start), PyUnicode_READ(kind, text, here - 1));
            if (sizes >> ((here - start) & 31) & 1 && add_word(self, found, kind, text, start, here - start) < 0)
                return -1;
        }
    }
    return 0;
}

static int add_words_of(Words *self, PyObject *found, PyObject *given)
{
    const void *text = PyUnicode_DATA(given);
    Py_ssize_t length = PyUnicode_GET_LENGTH(given);
    if (PyUnicode_KIND(given) == 1)
        return add_words(self, found, 1, text, length);
    return PyUnicode_KIND(given) == 2 ? add_words(self, found, 2, text, length)
                                      : add_words(self, found, 4, text, length);
}

static PyObject *words_in(Words *self, PyObject *given)
{
    if (!PyUnicode_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "a str is needed");
        return NULL;
    }
    PyObject *found = PySet_New(NULL);
    if (found && add_words_of(self, found, given) < 0)
        Py_CLEAR(found);
    return found;
}

static PyMethodDef words_methods[] = {
    {"words_in", (PyCFunction)words_in, METH_O, "Returns the set of words that a text has between other ASCII ones."},
    {0},
};

static PyType_Slot words_slots[] = {
    {Py_tp_doc, "Words(words): a tuple of words of ASCII letters, digits and underscores, to be looked for in texts."},
    {Py_tp_new, words_new},
    {Py_tp_dealloc, words_dealloc},
    {Py_tp_methods, words_methods},
    {0, NULL},
};

static PyType_Spec words_type = {"c4pipe.native._text.Words", sizeof(Words), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, words_slots};

/* English words: see filters/english_words.py, which is the reference, and filters/english_tables.py */

/* What a character is to the tokenizer: bits of the table `kinds`, the same as in english_tables.py. */
enum { LOWER = 1, UPPER = 2, TITLE = 4, SYMBOL = 8, MARK = 16, PREFIX = 32, QUOTE = 64, BEFORE_DOT = 128 };

#define LETTER (LOWER | UPPER | TITLE)
#define KINDS 0x110000
#define KNOWN_BITS 17   /* the table `known` has as many bits as this power of two */
#define LONGEST_KNOWN 12
#define LONGEST_UNIT 5

typedef struct {
    int64_t *at;
    Py_ssize_t count, room;
} Ends;

typedef struct {
    const Py_UCS4 *text;
    const byte *kinds, *known;
    Ends ends, behind; /* of tokens in the joined words; of the suffixes of a chunk in the text, the last first */
} Cutter;

static int add_end(Ends *ends, int64_t end)
{
    if (ends->count == ends->room) {
        Py_ssize_t room = ends->room ? ends->room * 2 : 256;
        int64_t *at = PyMem_Realloc(ends->at, room * sizeof(int64_t));
        if (!at) {
            PyErr_NoMemory();
            return -1;
        }
        ends->at = at;
        ends->room = room;
    }
    ends->at[ends->count++] = end;
    return 0;
}

static inline int is_digit(Py_UCS4 each) { return each >= '0' && each <= '9'; }

static inline int is_space(Py_UCS4 each)
{
    return each < 0x80 || (each >= 0x1680 && each <= 0x3000) ? Py_UNICODE_ISSPACE(each) : each == 0x85 || each == 0xA0;
}

/* Whether a piece of the text may be one that only Python cuts: true of all of these and of few others. */
static inline int may_be_known(const Cutter *self, Py_ssize_t start, Py_ssize_t end)
{
    uint64_t hash = 0;
    if (end - start > LONGEST_KNOWN)
        return 0;
    for (; start < end; start++)
        hash = (hash ^ self->text[start]) * 0x100000001B3u;
    hash *= 0x9E3779B97F4A7C15u;
    uint64_t first = hash >> (64 - KNOWN_BITS), second = hash >> (64 - 2 * KNOWN_BITS) & ((1 << KNOWN_BITS) - 1);
    return self->known[first >> 3] >> (first & 7) & self->known[second >> 3] >> (second & 7) & 1;
}

/* The length of the prefix of a chunk, which is not empty; -1 where Python has to look at it. */
static inline Py_ssize_t prefix_length(const Cutter *self, Py_ssize_t start, Py_ssize_t end)
{
    const Py_UCS4 *at = self->text + start;
    Py_UCS4 second = end - start > 1 ? at[1] : 0;
    Py_ssize_t dots = 0;
    if (self->kinds[*at] & (MARK | SYMBOL | PREFIX))
        return 1;
    if (*at == '+')
        return !is_digit(second);
    if (*at == '.')
        while (dots < end - start && at[dots] == '.')
            dots++;
    if ((second == '$' && (*at == 'A' || *at == 'C')) || (second == 'S' && *at == 'U' && end - start > 2 && at[2] == '$'))
        return -1;
    return dots > 1 ? dots : 0;
}

/* The length of the suffix of a chunk; -1 where Python has to look at it. */
static inline Py_ssize_t suffix_length(const Cutter *self, Py_ssize_t start, Py_ssize_t end)
{
    const Py_UCS4 *text = self->text;
    Py_ssize_t size = end - start, dots = 0, digit = end - 1;
    if (!size)
        return 0;
    Py_UCS4 last = text[end - 1], before = size > 1 ? text[end - 2] : 0, third = size > 2 ? text[end - 3] : 0;
    byte kind = self->kinds[last], kind_before = self->kinds[before];
    if (last == '.') {
        while (dots < size && text[end - 1 - dots] == '.')
            dots++;
        int is_abbreviation = (kind_before & UPPER && self->kinds[third] & UPPER) ||
                              (third == 0xB0 && before < 128 && before && strchr("FfCcKk", (int)before));
        return dots > 1 ? dots : is_digit(before) || kind_before & (LOWER | BEFORE_DOT) || is_abbreviation;
    }
    if (kind & (MARK | SYMBOL) || last == 0x2013 || last == 0x2014)
        return last == 0x2026 && before == last ? 2 : 1;
    if (is_digit(before) && (last == '+' || last == '%' || (kind & PREFIX && last != '=' && last != 0xA7)))
        return 1;
    if ((last == 's' || last == 'S') && (before == '\'' || before == 0x2019))
        return 2;
    if (last == '$')
        return before == 'A' || before == 'C' || before == 'S' ? -1 : 0;
    while (digit > start && end - digit <= LONGEST_UNIT && !is_digit(text[digit]))
        digit--;
    return digit < end - 1 && is_digit(text[digit]) && may_be_known(self, digit + 1, end) ? -1 : 0;
}

/* The length of the infix at a place of a chunk; 0 without one. */
static inline Py_ssize_t infix_length(const Cutter *self, Py_ssize_t at, Py_ssize_t start, Py_ssize_t end)
{
    const Py_UCS4 *text = self->text;
    Py_UCS4 each = text[at], before = at > start ? text[at - 1] : 0, next = at + 1 < end ? text[at + 1] : 0;
    byte kind_before = self->kinds[before], kind_next = self->kinds[next];
    int is_behind_word = kind_before & LETTER || is_digit(before);
    Py_ssize_t size = 1, most = each == '-' ? 3 : each == 0x2014 ? 2 : 1;
    if (each == 0x2026 || self->kinds[each] & SYMBOL)
        return 1;
    switch (each) {
    case '.':
        while (at + size < end && text[at + size] == '.')
            size++;
        return size > 1 ? size : kind_before & (LOWER | QUOTE) && kind_next & (UPPER | QUOTE);
    case ',':
        return kind_before & LETTER && kind_next & LETTER;
    case ':': case '<': case '>': case '=': case '/':
        return is_behind_word && kind_next & LETTER;
    case '+': case '*': case '^': case '-':
        if (is_digit(before) && (is_digit(next) || next == '-'))
            return 1;
        if (each != '-')
            return 0; /* fall through */
    case '~': case 0x2013: case 0x2014:
        while (size < most && at + size < end && text[at + size] == each)
            size++;
        return is_behind_word && at + size < end && self->kinds[text[at + size]] & LETTER ? size : 0;
    }
    return 0;
}

/* Whether a dot may be one of a host that ends a chunk, or that a port or path follows: it is the third of them, as in
 * an address of numbers, or small letters alone are behind it. */
static int may_end_host(const Cutter *self, Py_ssize_t dot, Py_ssize_t end, Py_ssize_t dots)
{
    Py_ssize_t at = dot + 1;
    while (at < end && self->kinds[self->text[at]] & LOWER)
        at++;
    return dots > 2 || (at > dot + 2 && (at == end || (self->text[at] < 128 && strchr(":/?#", (int)self->text[at]))));
}

/* Adds the ends of the tokens of a chunk without affixes, as cut_at_infixes does; 0 where it may be a URL, -1 after an
 * error. */
static int cut_middle(Cutter *self, Py_ssize_t start, Py_ssize_t end, Py_ssize_t shift)
{
    Py_ssize_t done = start, dots = 0, size;
    int in_host = 1; /* since the start, or behind the last / or @, each character may be one of a host */
    for (Py_ssize_t at = start; at < end; at += size ? size : 1) {
        Py_UCS4 each = self->text[at];
        byte kind = self->kinds[each] & (LETTER | SYMBOL);
        size = 0;
        if (is_digit(each) || (kind && !(kind & SYMBOL)))
            continue;
        if (each == '/' || each == '@') {
            in_host = 1;
            dots = 0;
        } else if (each < 0xA1 && each != '.' && each != '-' && each != '_') {
            in_host = 0;
        } else if (each == '.' && in_host && may_end_host(self, at, end, ++dots)) {
            return 0;
        }
        size = infix_length(self, at, start, end);
        if (!size || at == start)
            continue;
        if ((at > done && add_end(&self->ends, at - shift) < 0) || add_end(&self->ends, at + size - shift) < 0)
            return -1;
        done = at + size;
    }
    return done < end && add_end(&self->ends, end - shift) < 0 ? -1 : 1;
}

/* Adds the ends of a chunk's tokens, which are `shift` characters further in the text than in the joined words; 0 where
 * Python has to cut it, -1 after an error. */
static int cut_chunk(Cutter *self, Py_ssize_t start, Py_ssize_t end, Py_ssize_t shift)
{
    Ends *ends = &self->ends;
    Py_ssize_t first = ends->count;
    self->behind.count = 0;
    while (start < end) {
        Py_ssize_t prefix = prefix_length(self, start, end);
        Py_ssize_t suffix = prefix < 0 ? -1 : suffix_length(self, start + prefix, end);
        if (suffix < 0 || may_be_known(self, start, end))
            return 0;
        if (!prefix && !suffix)
            break;
        if (prefix && suffix && (may_be_known(self, start + prefix, end) || may_be_known(self, start, end - suffix)))
            return 0;
        if ((prefix && add_end(ends, start + prefix - shift) < 0) || (suffix && add_end(&self->behind, end - shift) < 0))
            return -1;
        start += prefix;
        end -= suffix;
    }
    int answer = start < end ? cut_middle(self, start, end, shift) : 1;
    while (answer > 0 && self->behind.count)
        if (add_end(ends, self->behind.at[--self->behind.count]) < 0)
            return -1;
    /* Of a run of tokens that is cut in another way, Python knows the first two. */
    for (Py_ssize_t each = first; answer > 0 && each + 1 < ends->count; each++)
        answer = !may_be_known(self, ends->at[each - 1] + shift, ends->at[each + 1] + shift);
    return answer;
}

/* Adds the ends of a chunk's tokens, which are `tokens`; -1 after an error. */
static int add_tokens(Ends *ends, Py_ssize_t length, PyObject *tokens)
{
    int64_t start = ends->at[ends->count - 1], end = start;
    int failed = !PyTuple_Check(tokens);
    for (Py_ssize_t each = 0; !failed && each < PyTuple_GET_SIZE(tokens); each++) {
        PyObject *token = PyTuple_GET_ITEM(tokens, each);
        failed = !PyUnicode_Check(token);
        end += failed ? 0 : PyUnicode_GET_LENGTH(token);
        if (!failed && add_end(ends, end) < 0)
            return -1;
    }
    if (failed || end - start != length) {
        PyErr_SetString(PyExc_ValueError, "the tokens are not those of the chunk");
        return -1;
    }
    return 0;
}

/* Adds the ends of the tokens that Python has for a chunk: 1 where `runs` has it, 0 where only `chunks` does, -1 after
 * an error. A look into `chunks` may put the chunk into `runs`. */
static int look_up(Ends *ends, PyObject *chunk, PyObject *chunks, PyObject *runs)
{
    PyObject *tokens = chunk ? PyObject_GetItem(chunks, chunk) : NULL;
    PyObject *changed = tokens ? PyDict_GetItemWithError(runs, chunk) : NULL;
    int answer = !tokens || (!changed && PyErr_Occurred()) ? -1 : changed != NULL;
    if (changed)
        Py_SETREF(tokens, Py_NewRef(changed));
    if (answer >= 0 && add_tokens(ends, PyUnicode_GET_LENGTH(chunk), tokens) < 0)
        answer = -1;
    Py_XDECREF(tokens);
    return answer;
}

/* Adds the ends of all tokens of a text, writes its chunks with nothing between them, and adds the numbers of those that
 * are in `runs` to `places`; returns where the chunks end, -1 after an error. */
static Py_ssize_t cut_text(Cutter *self, PyObject *given, byte *joined, PyObject *chunks, PyObject *runs, Ends *places)
{
    const byte *text = PyUnicode_DATA(given);
    Py_ssize_t length = PyUnicode_GET_LENGTH(given), kind = PyUnicode_KIND(given), filled = 0, at = 0;
    byte is_letter[256];
    for (int each = 0; each < 256; each++)
        is_letter[each] = each & LETTER && !(each & ~LETTER);
    for (Py_ssize_t number = 0;; number++) {
        while (at < length && is_space(self->text[at]))
            at++;
        Py_ssize_t start = at, before = self->ends.count;
        int is_word = 1; /* of letters alone: there is nothing to cut, unless it is known */
        for (; at < length && !is_space(self->text[at]); at++)
            is_word &= is_letter[self->kinds[self->text[at]]];
        if (start == at)
            return filled;
        memcpy(joined + filled * kind, text + start * kind, (at - start) * kind);
        int answer = is_word ? 0 : cut_chunk(self, start, at, start - filled);
        if (is_word && !may_be_known(self, start, at))
            answer = add_end(&self->ends, filled + at - start) < 0 ? -1 : 1;
        if (!answer) {
            self->ends.count = before;
            PyObject *chunk = PyUnicode_Substring(given, start, at);
            answer = look_up(&self->ends, chunk, chunks, runs);
            Py_XDECREF(chunk);
            if (answer > 0 && add_end(places, number) < 0)
                return -1;
        }
        if (answer < 0)
            return -1;
        filled += at - start;
    }
}

static PyObject *cut_words(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *given, *kinds, *known, *chunks, *runs, *made = NULL;
    Cutter self = {0};
    Ends places = {0};
    if (!PyArg_ParseTuple(args, "USSOO!", &given, &kinds, &known, &chunks, &PyDict_Type, &runs))
        return NULL;
    if (PyBytes_GET_SIZE(kinds) != KINDS || PyBytes_GET_SIZE(known) != 1 << (KNOWN_BITS - 3)) {
        PyErr_SetString(PyExc_ValueError, "the tables have another size");
        return NULL;
    }
    self.kinds = (byte *)PyBytes_AS_STRING(kinds);
    self.known = (byte *)PyBytes_AS_STRING(known);
    Py_UCS4 *text = PyUnicode_AsUCS4Copy(given);
    byte *joined = PyMem_Malloc(PyUnicode_GET_LENGTH(given) * PyUnicode_KIND(given) + 1);
    Py_ssize_t filled = -1, word = sizeof(int64_t);
    self.text = text;
    if (!joined)
        PyErr_NoMemory();
    else if (text && add_end(&self.ends, 0) == 0)
        filled = cut_text(&self, given, joined, chunks, runs, &places);
    if (filled >= 0)
        made = Py_BuildValue("(Ny#y#)", PyUnicode_FromKindAndData(PyUnicode_KIND(given), joined, filled),
                             (char *)self.ends.at, self.ends.count * word, places.at ? (char *)places.at : "",
                             places.count * word);
    PyMem_Free(text);
    PyMem_Free(joined);
    PyMem_Free(self.ends.at);
    PyMem_Free(self.behind.at);
    PyMem_Free(places.at);
    return made;
}

/* Records and their text: see wet/records.py */

#define MOST_NAME 64
#define MOST_NEWLINES 249 /* behind a body: as many as `can_end_at` looks at */

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

/* Returns where the next record starts behind a body that ends at `at`; NULL where Python has to find out. */
static const byte *next_version(const byte *at, const byte *end)
{
    const byte *after = at;
    while (after < end && after - at < MOST_NEWLINES && (*after == '\r' || *after == '\n'))
        after++;
    return after - at < MOST_NEWLINES && end - after >= 7 && !memcmp(after, "WARC/1.", 7) ? after : NULL;
}

/* Adds the record at `at`, and returns where the next one starts; NULL where there is none that is plain. */
static const byte *add_record(PyObject *records, const byte *at, const byte *end, Py_ssize_t place,
                              Py_ssize_t most_header, Py_ssize_t most_body)
{
    const byte *next = NULL;
    PyObject *record = NULL, *fields = PyDict_New();
    const byte *body = fields ? plain_header(fields, at, end - at < most_header ? end : at + most_header) : NULL;
    Py_ssize_t length = body ? plain_length(fields, most_body) : -1;
    if (length >= 0 && length < end - body)
        next = next_version(body + length, end);
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

static void learn_utf8(void)
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

/* Sentences: see _sentences.c */

PyObject *sentence_starts(PyObject *unused, PyObject *args);
PyObject *sure_sentences(PyObject *unused, PyObject *args);

static PyMethodDef functions[] = {
    {"lower", lower_text, METH_O, "Returns str.lower of a text."},
    {"unit_hashes", unit_hashes, METH_VARARGS,
     "Returns the hash of each unit of a text in UTF-8 (starts in characters, the first 0) in lower case, trimmed or with "
     "white space folded; None where Python has to."},
    {"span_hashes", span_hashes, METH_VARARGS, "Returns the hashes of spans of `size` units, from those of the units."},
    {"program", program, METH_O,
     "Returns the program for `Lines.run` of a tuple of steps; a step is a tuple of a name and arguments."},
    {"sentence_starts", sentence_starts, METH_VARARGS,
     "Returns the start of each sentence of a list of lines, in characters of the lines joined by newlines. Needs the words "
     "behind which a full stop may not end the sentence, a function that tells of two words around a mark whether it ends "
     "there, and one that finds the starts in a line that is left to Python."},
    {"sure_sentences", sure_sentences, METH_VARARGS,
     "Returns how many sentences surely end inside a text, given those words; at most a number."},
    {"plain_records", plain_records, METH_VARARGS,
     "Returns the plain records at the start of bytes (fields by lower-case name, body, offset) and the size of that, given "
     "the offset of the first byte and the most bytes of a header block and of a body. Python has to read the next one."},
    {"is_utf8", is_utf8, METH_O, "Tells whether bytes are valid UTF-8, as bytes.decode does."},
    {"cut_words", cut_words, METH_VARARGS,
     "Returns the words of an English text with nothing between them, and as 64-bit numbers their ends and the numbers of "
     "the chunks in `runs`. Two tables (see filters/english_tables.py) say which chunks are left to Python: a mapping has "
     "their tokens, and a dict those of chunks with runs."},
    {"count_words", count_words, METH_VARARGS,
     "Returns, of joined words, their ends and a text of punctuation, the number of words with a letter, the number of "
     "words with more than punctuation, and the characters of these."},
    {"words_among", words_among, METH_VARARGS,
     "Returns how many of a tuple of words are among joined words, given their ends."},
    {"top_ngram", top_ngram, METH_VARARGS,
     "Returns the characters that the most frequent n-gram takes with its spaces, of joined words, their ends and a size."},
    {"repeated_ngrams", repeated_ngrams, METH_VARARGS,
     "Returns the characters of n-grams that occurred before, of joined words, their ends, a size and shared_starts."},
    {"shared_starts", shared_starts, METH_VARARGS,
     "Returns a byte for each of joined words, given their ends: 0 where no n-gram of at least 12 characters that begins "
     "there is equal to another one."},
    {0},
};

/* Fills the tables, which are the same in every interpreter, and adds the types. */
static int execute(PyObject *module)
{
    const byte breaks[] = {10, 11, 12, 13, 28, 29, 30, 0xC2, 0xE2};
    PyType_Spec *specs[] = {&lines_type, &words_type};
    for (size_t each = 0; each < sizeof breaks; each++)
        may_break[breaks[each]] = 1;
    learn_utf8();
    if (learn_lower() < 0 || PyModule_AddIntConstant(module, "VERSION", VERSION) < 0)
        return -1;
    for (size_t each = 0; each < 2; each++) {
        PyObject *type = PyType_FromModuleAndSpec(module, specs[each], NULL);
        int failed = !type || PyModule_AddType(module, (PyTypeObject *)type) < 0;
        Py_XDECREF(type);
        if (failed)
            return -1;
    }
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "c4pipe.native._text",
    .m_doc = "Line rules, lower case, units, span hashes, n-grams and words, for bulk.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__text(void) { return PyModuleDef_Init(&definition); }
