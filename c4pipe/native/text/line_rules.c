/* The rules on the lines of a page's UTF-8 text, as filters/lines.py, phrases.py and page_size.py have them on str. A
 * program has the steps that a recipe applies one after the other (the method `native` of a rule returns its step). */

#include "text.h"

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

/* The steps */

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
    for (Py_ssize_t each = 0; each < step->texts.count; each++) {
        Piece text = step->texts.texts[each];
        if (piece->size >= text.size && *piece->at == *text.at && !memcmp(piece->at, text.at, text.size))
            return DROPPED;
    }
    return KEPT;
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

/* Puts a line that has a [ through a function of Python. */
static int judge_brackets(Lines *self, Piece *piece, const Step *step)
{
    if (!memchr(piece->at, '[', piece->size))
        return KEPT;
    Piece before = *piece;
    PyObject *line = decode(before);
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
    if (step->texts.count == 1 && step->longest == 3 && upper(*step->texts.texts->at) == *step->texts.texts->at)
        return memchr(piece.at, *step->texts.texts->at, piece.size) != NULL; /* one character without case */
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
    int failed = 0;
    for (Py_ssize_t each = 0; !failed && each < self->count; each++)
        failed = cut_everywhere(&again, self->pieces[each].at, self->pieces[each].at + self->pieces[each].size) < 0;
    PyMem_Free(failed ? again.pieces : self->pieces);
    if (failed)
        return ERROR;
    self->pieces = again.pieces;
    self->count = again.count;
    self->room = again.room;
    return 1;
}

static int trim_start(Lines *self)
{
    if (!self->count)
        return 0;
    Piece *first = self->pieces;
    const byte *end = first->at + first->size, *start = skip_space(first->at, end);
    int changed = start > first->at;
    *first = (Piece){start, end - start};
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

static PyObject *make_program(PyObject *Py_UNUSED(unused), PyObject *given)
{
    Py_ssize_t count = PyTuple_Check(given) ? PyTuple_GET_SIZE(given) : PROGRAM_STEPS + 1;
    if (count > PROGRAM_STEPS) {
        PyErr_Format(PyExc_TypeError, "a tuple of at most %d steps is needed", PROGRAM_STEPS);
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

int run_steps(Lines *self, PyObject *given, RunResult *result)
{
    const Program *program = PyCapsule_GetPointer(given, PROGRAM);
    Py_ssize_t sum = 0;
    int answer = 0;
    *result = (RunResult){.dropped_by = -1, .read = -1};
    if (!program)
        return -1;
    if (self->busy) {
        PyErr_SetString(PyExc_RuntimeError, "the lines can't be changed by a function that they call");
        return -1;
    }
    self->busy = 1;
    for (Py_ssize_t each = 0; each < program->count && result->dropped_by < 0 && answer >= 0; each++) {
        const Step *step = &program->steps[each];
        Py_ssize_t last = each;
        if (step->action->judge) {
            while (last + 1 < program->count && program->steps[last + 1].action->judge)
                last++;
            answer = judge_lines(self, step, last - each + 1, result->taken + result->judges);
            for (; each < last; each++)
                sum += result->taken[result->judges++];
            sum += result->taken[result->judges++];
        } else if (step->action->drops) {
            result->dropped_by = step->action->drops(self, step) ? each : -1;
        } else if (step->action->change) {
            answer = step->action->change(self);
            result->has_changed |= answer > 0;
        } else {
            result->read = self->count + sum;
        }
    }
    self->busy = 0;
    result->has_changed |= sum > 0;
    return answer < 0 ? -1 : 0;
}

PyObject *run_program(Lines *self, PyObject *given)
{
    RunResult run;
    PyObject *changes = run_steps(self, given, &run) < 0 ? NULL : PyTuple_New(run.judges);
    for (Py_ssize_t each = 0; changes && each < run.judges; each++) {
        PyObject *number = PyLong_FromSsize_t(run.taken[each]);
        if (number)
            PyTuple_SET_ITEM(changes, each, number);
        else
            Py_CLEAR(changes);
    }
    return changes ? Py_BuildValue("nnNO", run.dropped_by, run.read, changes, run.has_changed ? Py_True : Py_False) : NULL;
}

PyMethodDef line_rule_functions[] = {
    {"program", make_program, METH_O,
     "Returns the program for `Lines.run` of a tuple of steps; a step is a tuple of a name and arguments."},
    {0},
};
