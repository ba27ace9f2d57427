/* langdetect 1.0.9 (detector.py, utils/ngram.py of that package) on its own profiles: the same draws, the same
 * floating-point operations in the same order, hence the same probabilities to the last bit. What is rare (accents
 * as characters of their own) is prepared in Python: see text/languages.py. */

#include "text/text.h"

#include <math.h>

#define VERSION 10 /* as in __init__.py */
#define LANGUAGES 55
#define MOST_CHARACTERS 10000 /* of a text: Detector.max_text_length */
#define TRIALS 7
#define BETWEEN_CHECKS 5  /* steps, after the first; all of Detector's constants */
#define MOST_STEPS 1000
#define CODE_POINTS 0x110000

/* Characters have numbers of 12 bits, n-grams up to three of them, and a place of the table an n-gram (36 bits) above
 * the number of its entry (or row) and a flag. */
#define CHARACTER_BITS 12
#define ENTRY_BITS 24
#define DENSE (1 << (ENTRY_BITS - 1)) /* flag: it is the number of a row */
#define ENTRY (DENSE - 1)
#define SPACE 1
#define UNKNOWN 2         /* in no profile */
#define UNKNOWN_UPPER 3
#define FEW_BITS 8        /* of the lowest numbers: letters up to U+00FF, and those of the first profiles */
#define FEW (1 << FEW_BITS)
#define FILTER_BITS 20
#define LANGUAGE_BITS 6
#define WIDTH 56          /* of a row: LANGUAGES, and zero where vectors need it */
#define MANY 4            /* shares of an n-gram that has a row */
#define PLACE_SHIFT 2     /* of an n-gram of a text: its place, in 16 bits above the number of characters before it */

typedef struct {
    PyObject_HEAD
    PyObject *normalize;   /* NGram.normalize */
    uint16_t *numbers;     /* of the characters of the profiles */
    uint16_t *normalized;  /* of what each character is read as; 0 before it was met */
    byte upper[1 << CHARACTER_BITS];  /* whether the character of a number is one, as str.isupper has it */
    uint16_t known;        /* numbers given */
    uint64_t *table;       /* the n-grams of the profiles */
    size_t mask;           /* places of the table less one */
    byte *filter;          /* a bit for each n-gram, or several: most n-grams without a bit are not looked up */
    uint32_t *first;       /* where the shares of each entry begin; one more for the end */
    uint32_t entries;
    uint32_t *shares;      /* how often a language has the n-gram, above the number of the language */
    double totals[3][LANGUAGES];  /* n-grams of each length that a language has */
    double *dense;         /* rows of probabilities by language, of n-grams with many shares */
    byte *few_pairs;       /* what n_grams_at tells of pairs of numbers below FEW */
    uint64_t *few_triples; /* a bit for each such triple of which it tells */
    uint32_t *draws;       /* what random.Random(0) draws, 32 bits each */
    Py_ssize_t draw_count;
    int compensated;       /* sum() as of Python 3.12 */
} Detector;

/* The profiles */

static inline size_t place_of(const Detector *self, uint64_t gram)
{
    size_t place = (gram * 0x9E3779B97F4A7C15u) >> 40 & self->mask;
    while (self->table[place] && self->table[place] >> ENTRY_BITS != gram)
        place = (place + 1) & self->mask;
    return place;
}

/* The number of a character, a new one where it has none; 0 after an error. */
static uint16_t number_of(Detector *self, Py_UCS4 each)
{
    if (self->numbers[each])
        return self->numbers[each];
    if (self->known + 1 >= 1 << CHARACTER_BITS) {
        PyErr_SetString(PyExc_ValueError, "the language profiles have too many characters");
        return 0;
    }
    self->upper[++self->known] = Py_UNICODE_ISUPPER(each) != 0;
    return self->numbers[each] = self->known;
}

/* What is left of a profile: a file of the langdetect package, as bytes. */
typedef struct {
    const byte *at, *end;
} Profile;

static int skip(Profile *profile, const char *expected)
{
    size_t size = strlen(expected);
    if ((size_t)(profile->end - profile->at) < size || memcmp(profile->at, expected, size))
        return 0;
    profile->at += size;
    return 1;
}

/* Whether a number of at most 15 digits is next, which a double holds exactly. */
static int read_number(Profile *profile, uint64_t *number)
{
    const byte *from = profile->at;
    for (*number = 0; profile->at < profile->end && (byte)(*profile->at - '0') < 10 && profile->at - from < 15;)
        *number = 10 * *number + (*profile->at++ - '0');
    return profile->at > from;
}

/* The next character of UTF-8; 0 where none is there, and for what JSON escapes. */
static Py_UCS4 read_character(Profile *profile)
{
    if (profile->at == profile->end || *profile->at < ' ' || *profile->at == '"' || *profile->at == '\\')
        return 0;
    Py_UCS4 each = *profile->at++;
    if (each < 0x80)
        return each;
    int more = each >= 0xF0 ? 3 : each >= 0xE0 ? 2 : 1;
    if (each < 0xC2 || profile->end - profile->at < more)
        return 0;
    for (each &= 0x3F >> more; more--; profile->at++) {
        if ((*profile->at & 0xC0) != 0x80)
            return 0;
        each = each << 6 | (*profile->at & 0x3F);
    }
    return each < CODE_POINTS ? each : 0;
}

/* Reads `"word":times`, and the n-gram of the word, one to three characters; 0 for anything else. */
static int read_word(Detector *self, Profile *profile, uint64_t *gram, uint64_t *times)
{
    *gram = 0;
    if (!skip(profile, "\""))
        return 0;
    for (int length = 0; length < 3 && !(length && profile->at < profile->end && *profile->at == '"'); length++) {
        Py_UCS4 each = read_character(profile);
        uint16_t number = each ? number_of(self, each) : 0;
        if (!number)
            return 0;
        *gram = *gram << CHARACTER_BITS | number;
    }
    return skip(profile, "\":") && read_number(profile, times) && *times < 1U << (32 - LANGUAGE_BITS);
}

static inline uint64_t filter_place(uint64_t gram) { return gram * 0x9E3779B97F4A7C15u >> (64 - FILTER_BITS); }

static inline int has_gram(const Detector *self, uint64_t gram)
{
    uint64_t bit = filter_place(gram);
    return (self->filter[bit >> 3] >> (bit & 7) & 1) && self->table[place_of(self, gram)];
}

static const uint64_t one = (1 << CHARACTER_BITS) - 1, two = ((uint64_t)1 << 2 * CHARACTER_BITS) - 1,
                      three = ((uint64_t)1 << 3 * CHARACTER_BITS) - 1;

typedef struct {
    uint32_t entry, share;
} Read;

/* Enters the words of a profile, counts those of each entry in `first`, and writes their shares as they come. Returns
 * where it ended, or NULL where the profile is not as langdetect's are: it is JSON, without blanks and escapes. */
static Read *read_profile(Detector *self, Profile *profile, uint32_t language, Read *read)
{
    if (!skip(profile, "{\"freq\":{"))
        return NULL;
    do {
        uint64_t gram, times;
        if (!read_word(self, profile, &gram, &times))
            return NULL;
        size_t place = place_of(self, gram);
        if (!self->table[place])
            self->table[place] = gram << ENTRY_BITS | self->entries++;
        *read = (Read){self->table[place] & ENTRY, (uint32_t)times << LANGUAGE_BITS | language};
        self->first[read++->entry]++;
    } while (skip(profile, ","));
    if (!skip(profile, "},\"n_words\":["))
        return NULL;
    for (int length = 0; length < 3; length++) {
        uint64_t total;
        if (!read_number(profile, &total) || !skip(profile, length < 2 ? "," : "],"))
            return NULL;
        self->totals[length][language] = (double)total;
    }
    return read;
}

/* Returns where the shares of all profiles end, or NULL after an error. */
static Read *read_profiles(Detector *self, PyObject *profiles, Read *read)
{
    for (uint32_t language = 0; language < LANGUAGES; language++) {
        PyObject *bytes = PyTuple_GET_ITEM(profiles, language);
        const byte *from = (const byte *)PyBytes_AS_STRING(bytes);
        Profile profile = {from, from + PyBytes_GET_SIZE(bytes)};
        read = read_profile(self, &profile, language, read);
        if (read)
            continue;
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "language profile %u is not as langdetect 1.0.9 has it, at byte %zd",
                         language, (Py_ssize_t)(profile.at - from));
        return NULL;
    }
    return read;
}

/* Probabilities of an n-gram, by language; written into `row` unless they are at hand. */
static const double *row_of(const Detector *self, uint64_t gram, double *row)
{
    uint64_t entry = self->table[place_of(self, gram)];
    if (entry & DENSE)
        return self->dense + (entry & ENTRY) * WIDTH;
    entry &= ENTRY;
    const double *totals = self->totals[gram > two ? 2 : gram > one];
    for (int each = 0; each < WIDTH; each++)
        row[each] = 0.0;
    for (uint32_t at = self->first[entry]; at < self->first[entry + 1]; at++) {
        uint32_t language = self->shares[at] & ((1 << LANGUAGE_BITS) - 1);
        row[language] = (self->shares[at] >> LANGUAGE_BITS) / totals[language];
    }
    return row;
}

/* Rows for the n-grams that many languages have, which are those that texts are full of. */
static int make_rows(Detector *self)
{
    size_t count = 0;
    for (uint32_t each = 0; each < self->entries; each++)
        count += self->first[each + 1] - self->first[each] >= MANY;
    self->dense = PyMem_Calloc(count + 1, WIDTH * sizeof *self->dense);
    if (!self->dense) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t place = 0; place <= self->mask && count; place++) {
        uint64_t gram = self->table[place] >> ENTRY_BITS, entry = self->table[place] & ENTRY;
        if (!gram || self->first[entry + 1] - self->first[entry] < MANY)
            continue;
        row_of(self, gram, self->dense + --count * WIDTH);
        self->table[place] = gram << ENTRY_BITS | DENSE | count;
    }
    return 0;
}

/* Which of the n-grams that end a triple are read and in the profiles: 1 for its last character, 2 for two, 4 for all
 * three. Where a word begins, the triple has a space and one character. Of capitals, all but the first are not read. */
static byte n_grams_at(const Detector *self, uint64_t triple)
{
    if (self->upper[triple & one] && self->upper[triple >> CHARACTER_BITS & one])
        return 0;
    int has_one = (triple & one) != SPACE && has_gram(self, triple & one);
    int has_three = triple > two && (triple >> CHARACTER_BITS & one) != SPACE && has_gram(self, triple);
    return has_one | has_gram(self, triple & two) << 1 | has_three << 2;
}

/* Where few_triples has the bits of 64 third characters. Those of Latin letters are close together. */
static inline size_t few_place(uint64_t first, uint64_t second, uint64_t third)
{
    return (third >> 6) << 2 * FEW_BITS | first << FEW_BITS | second;
}

/* Asks n_grams_at for the characters of most texts, whose answers are in few cache lines. */
static int learn_few(Detector *self)
{
    self->few_pairs = PyMem_Calloc(FEW, FEW);
    self->few_triples = PyMem_Calloc(FEW * FEW / 8, FEW);
    self->filter = PyMem_Calloc(1 << FILTER_BITS >> 3, 1);
    if (!self->few_pairs || !self->few_triples || !self->filter) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t place = 0; place <= self->mask; place++)
        if (self->table[place]) {
            uint64_t bit = filter_place(self->table[place] >> ENTRY_BITS);
            self->filter[bit >> 3] |= 1 << (bit & 7);
        }
    for (uint64_t second = 1; second < FEW; second++)
        for (uint64_t third = 1; third < FEW; third++)
            self->few_pairs[second << FEW_BITS | third] = n_grams_at(self, second << CHARACTER_BITS | third);
    self->few_pairs[SPACE << FEW_BITS | SPACE] = 0;
    for (size_t place = 0; place <= self->mask; place++) {
        uint64_t gram = self->table[place] >> ENTRY_BITS;
        uint64_t first = gram >> 2 * CHARACTER_BITS, second = gram >> CHARACTER_BITS & one, third = gram & one;
        if (first && (first | second | third) < FEW && n_grams_at(self, gram))
            self->few_triples[few_place(first, second, third)] |= (uint64_t)1 << (third & 63);
    }
    return 0;
}

static int learn(Detector *self, PyObject *profiles)
{
    size_t words = 0; /* or a few more: each has a colon */
    if (PyTuple_GET_SIZE(profiles) != LANGUAGES) {
        PyErr_Format(PyExc_ValueError, "%d language profiles are needed, not %zd", LANGUAGES,
                     PyTuple_GET_SIZE(profiles));
        return -1;
    }
    for (int each = 0; each < LANGUAGES; each++) {
        char *at;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(profiles, each), &at, &size) < 0)
            return -1;
        for (; size--; at++)
            words += *at == ':';
    }
    if (words > ENTRY) {
        PyErr_SetString(PyExc_ValueError, "the language profiles have too many words");
        return -1;
    }
    for (self->mask = 1; self->mask < words; self->mask = 2 * self->mask + 1)
        ;
    self->table = PyMem_Calloc(self->mask + 1, sizeof *self->table);
    self->first = PyMem_Calloc(words + 1, sizeof *self->first);
    self->shares = PyMem_Calloc(words + 1, sizeof *self->shares);
    Read *read = PyMem_Malloc((words + 1) * sizeof *read), *end = NULL;
    int failed = !self->table || !self->first || !self->shares || !read;
    if (failed)
        PyErr_NoMemory();
    failed = failed || !(end = read_profiles(self, profiles, read));
    for (uint32_t each = 0; !failed && each < self->entries; each++)
        self->first[each + 1] += self->first[each]; /* where its shares end */
    while (!failed && end > read) {
        end--;
        self->shares[--self->first[end->entry]] = end->share;
    }
    PyMem_Free(read);
    return failed || learn_few(self) < 0 ? -1 : make_rows(self);
}

/* The text */

static inline int is_alphanumeric(Py_UCS4 each)
{
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || (each >= '0' && each <= '9');
}

static inline int in_host(Py_UCS4 each) { return is_alphanumeric(each) || each == '-' || each == '_'; }

static inline int in_mail(Py_UCS4 each) { return in_host(each) || each == '.'; }

static inline int in_url(Py_UCS4 each)
{
    return is_alphanumeric(each) || (each && each < 0x80 && strchr("-_.?&~;+=/#", (int)each));
}

/* What is read of a text. Blanks that follow one another are left in it: they make no other n-grams. */
typedef struct {
    int kind; /* of str: bytes of a character */
    byte *at;
    Py_ssize_t count;
    int without_latin; /* whether its Latin letters are passed over */
} Text;

static inline Py_UCS4 character(const Text *text, Py_ssize_t at) { return PyUnicode_READ(text->kind, text->at, at); }

/* How many characters from a place on are members of a set. */
static Py_ssize_t run(const Text *text, Py_ssize_t at, int (*is_member)(Py_UCS4), Py_ssize_t most)
{
    Py_ssize_t found = 0;
    while (found < most && at + found < text->count && is_member(character(text, at + found)))
        found++;
    return found;
}

typedef struct {
    Py_ssize_t before, after; /* characters of a match before its mark, and from that on; both 0 where there is none */
} Match;

/* The match of URL_RE around a colon; what is before it ends at `kept`. */
static Match match_url(const Text *text, Py_ssize_t kept, Py_ssize_t colon)
{
    Py_ssize_t before = kept && character(text, kept - 1) == 's' ? 5 : 4, rest = 0;
    if (kept < before || colon + 2 >= text->count || character(text, colon + 1) != '/' ||
        character(text, colon + 2) != '/')
        return (Match){0, 0};
    for (int each = 0; each < 4; each++)
        if (character(text, kept - before + each) != (Py_UCS4)"http"[each])
            return (Match){0, 0};
    rest = run(text, colon + 3, in_url, 2076);
    return rest ? (Match){before, 3 + rest} : (Match){0, 0};
}

/* The match of MAIL_RE around its @ */
static Match match_mail(const Text *text, Py_ssize_t kept, Py_ssize_t sign)
{
    Py_ssize_t before = 0;
    while (before < 64 && before < kept && in_mail(character(text, kept - before - 1)))
        before++;
    Py_ssize_t host = run(text, sign + 1, in_host, 255);
    Py_ssize_t rest = run(text, sign + 1 + host, in_mail, 255);
    return before && host && host + rest > 1 ? (Match){before, 1 + host + rest} : (Match){0, 0};
}

/* Puts a space for each match, which is looked for from its mark. */
static void remove_matches(Text *text, Py_UCS4 mark, Match (*match)(const Text *, Py_ssize_t, Py_ssize_t))
{
    Py_ssize_t kept = 0, at = 0, next;
    for (;; at = next) {
        for (next = at; next < text->count && character(text, next) != mark;)
            next++;
        memmove(text->at + kept * text->kind, text->at + at * text->kind, (next - at) * text->kind);
        kept += next - at;
        if (next == text->count)
            break;
        Match found = match(text, kept, next);
        kept -= found.before;
        PyUnicode_WRITE(text->kind, text->at, kept++, found.after ? ' ' : mark);
        next += found.after ? found.after : 1;
    }
    text->count = kept;
}

/* Whether NGram.normalize_vi may join the character with the letter before it: a range that has its five accents. */
static inline int is_accent(Py_UCS4 each) { return each >= 0x300 && each <= 0x323; }

/* Whether a text may have a match of URL_RE or MAIL_RE. */
static int has_address(PyObject *text)
{
    Py_ssize_t size = PyUnicode_GET_LENGTH(text), at = PyUnicode_FindChar(text, '@', 0, size, 1);
    for (Py_ssize_t colon = -1; at == -1 && (colon = PyUnicode_FindChar(text, ':', colon + 1, size, 1)) >= 0;)
        if (size - colon > 2 && PyUnicode_READ_CHAR(text, colon + 1) == '/')
            at = colon;
    return at >= 0;
}

/* Limits the text as Detector.append does, and looks for Latin letters as cleaning_text; false where NGram.normalize_vi
 * may join some of its characters. Each kind has a loop without branches, by which many characters are seen at once. */
static inline int measure(int kind, Text *text)
{
    Py_ssize_t size = text->count, count = size < MOST_CHARACTERS ? size : MOST_CHARACTERS;
    uint16_t latin = 0, other = 0, accents = 0;
    for (Py_ssize_t at = 0; at < count; at++) {
        Py_UCS4 each = PyUnicode_READ(kind, text->at, at);
        latin += each >= 'A' && each <= 'z';
        other += each >= 0x300;
        accents += is_accent(each);
    }
    text->count = count;
    text->without_latin = latin * 2 < other;
    return !accents && (size == count || !is_accent(PyUnicode_READ(kind, text->at, count))); /* joined with the last */
}

/* The n-grams of the text */

/* Asks what a character is read as; 0 after an error. */
static uint16_t meet(Detector *self, Py_UCS4 each)
{
    PyObject *read = PyObject_CallFunction(self->normalize, "C", (int)each);
    if (!read || !PyUnicode_Check(read) || PyUnicode_GET_LENGTH(read) != 1) {
        if (read)
            PyErr_SetString(PyExc_TypeError, "a character has to be read as one character");
        Py_XDECREF(read);
        return 0;
    }
    Py_UCS4 as = PyUnicode_READ_CHAR(read, 0);
    Py_DECREF(read);
    uint16_t unknown = Py_UNICODE_ISUPPER(as) ? UNKNOWN_UPPER : UNKNOWN;
    return self->normalized[each] = self->numbers[as] ? self->numbers[as] : unknown;
}

/* What is read of a text, and its n-grams: the place of the last character, above the number of those before it. */
typedef struct {
    uint16_t *numbers; /* behind the blank that a text begins with and the nothing before it */
    uint16_t *grams;
    Py_ssize_t count;
} Grams;

#define BEGIN 2 /* the place of the first character */

_Static_assert(MOST_CHARACTERS + BEGIN < 1 << (16 - PLACE_SHIFT), "a place has its room");

/* Finds the n-grams that the profiles have, in the order of NGram.add_char; -1 after an error. */
static inline int extract(int kind, Detector *self, Text text, Grams *grams)
{
    /* by what n_grams_at tells: how many characters are before the last, and how many n-grams that are */
    static const uint16_t before[8][4] = {{0}, {0}, {1}, {0, 1}, {2}, {0, 2}, {1, 2}, {0, 1, 2}};
    static const byte counts[8] = {0, 1, 1, 2, 1, 2, 2, 3};
    const uint64_t next_place = 0x0001000100010001u << PLACE_SHIFT;
    const uint16_t *normalized = self->normalized;
    const byte *few_pairs = self->few_pairs;
    const uint64_t *few_triples = self->few_triples;
    uint64_t first = 0, second = SPACE, third, places = BEGIN * next_place;
    uint16_t *to = grams->grams, *number = grams->numbers;
    Py_UCS4 passed_over = text.without_latin ? 'z' - 'A' + 1 : 0;
    *number++ = 0;
    *number++ = SPACE;
    for (Py_ssize_t at = 0; at < text.count; at++) {
        Py_UCS4 each = PyUnicode_READ(kind, text.at, at);
        if (each - 'A' < passed_over)
            continue;
        if (!(third = normalized[each]) && !(third = meet(self, each)))
            return -1;
        unsigned has;
        if ((first | second | third) < FEW)
            has = few_pairs[second << FEW_BITS | third] |
                  (few_triples[few_place(first, second, third)] >> (third & 63) & 1) << 2;
        else
            has = n_grams_at(self, first << 2 * CHARACTER_BITS | second << CHARACTER_BITS | third);
        uint64_t four;
        memcpy(&four, before[has], sizeof four);
        four += places;
        memcpy(to, &four, sizeof four); /* those that are none are overwritten */
        to += counts[has];
        places += next_place;
        *number++ = third;
        first = second;
        second = third;
    }
    grams->count = to - grams->grams;
    return 0;
}

/* An n-gram as the profiles' table has it */
static inline uint64_t read_gram(const Grams *grams, Py_ssize_t index)
{
    const uint16_t *last = grams->numbers + (grams->grams[index] >> PLACE_SHIFT);
    uint64_t gram = (uint64_t)last[-2] << 2 * CHARACTER_BITS | (uint64_t)last[-1] << CHARACTER_BITS | last[0];
    return gram & three >> (2 - (grams->grams[index] & ((1 << PLACE_SHIFT) - 1))) * CHARACTER_BITS;
}

/* The probabilities */

typedef struct {
    const uint32_t *draws;
    Py_ssize_t used, count;
    double next; /* of gauss */
    int has_next;
} Random;

static inline double draw_double(Random *random)
{
    uint32_t high = random->draws[random->used++] >> 5, low = random->draws[random->used++] >> 6;
    return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0);
}

/* random.gauss(0.0, 1.0) */
static double draw_gauss(Random *random)
{
    random->has_next = !random->has_next;
    if (!random->has_next)
        return random->next;
    double turn = draw_double(random) * 6.283185307179586;
    double radius = sqrt(-2.0 * log(1.0 - draw_double(random)));
    random->next = sin(turn) * radius;
    return cos(turn) * radius;
}

/* random.choice of things whose count has so many bits, as an index; -1 where there are no draws left */
static Py_ssize_t draw_below(Random *random, Py_ssize_t count, int bits)
{
    while (random->used < random->count - 4) { /* what a gauss takes is always left */
        Py_ssize_t drawn = random->draws[random->used++] >> (32 - bits);
        if (drawn < count)
            return drawn;
    }
    return -1;
}

/* sum() of floats, which Python 3.12 began to compensate (Neumaier) */
static double sum(const double *each, int compensated)
{
    double total = 0.0, lost = 0.0;
    for (int at = 0; at < LANGUAGES; at++) {
        double next = total + each[at];
        if (compensated)
            lost += fabs(total) >= fabs(each[at]) ? (total - next) + each[at] : (each[at] - next) + total;
        total = next;
    }
    return lost && isfinite(lost) ? total + lost : total;
}

/* Detector._update_lang_prob for each row */
static inline void update(double *restrict probabilities, const double *const *rows, int now, double weight)
{
    for (int each = 0; each < WIDTH; each++) {
        double probability = probabilities[each];
        for (int step = 0; step < now; step++)
            probability *= weight + rows[step][each];
        probabilities[each] = probability;
    }
}

/* Some steps, then Detector._normalize_prob; tells whether a probability is above its threshold. */
FOR_VECTORS static int advance(double *restrict probabilities, const double *const *rows, int now, double weight,
                               int compensated)
{
    if (now == 1)
        update(probabilities, rows, 1, weight);
    else
        update(probabilities, rows, BETWEEN_CHECKS, weight);
    double total = sum(probabilities, compensated);
    int converged = 0;
    for (int each = 0; each < WIDTH; each++)
        probabilities[each] /= total;
    for (int each = 0; each < WIDTH; each++)
        converged |= probabilities[each] > 0.99999;
    return converged;
}

/* Picks the next n-grams, and finds their rows and fetches them into the cache; false where there are no draws left. */
static int pick(const Detector *self, Random *random, const Grams *grams, int bits, int now, const double **rows,
                double scratch[][WIDTH])
{
    for (int each = 0; each < now; each++) {
        Py_ssize_t chosen = draw_below(random, grams->count, bits);
        if (chosen < 0)
            return 0;
        rows[each] = row_of(self, read_gram(grams, chosen), scratch[each]);
        for (int line = 0; line < WIDTH; line += 8)
            __builtin_prefetch(rows[each] + line);
    }
    return 1;
}

/* Detector._detect_block after its n-grams are there; -1 where there are no draws left. */
static int detect(const Detector *self, const Grams *grams, double *means)
{
    Random random = {.draws = self->draws, .count = self->draw_count};
    int bits = 0;
    while (grams->count >> bits)
        bits++;
    for (int trial = 0; trial < TRIALS; trial++) {
        double probabilities[WIDTH] = {0}, scratch[2][BETWEEN_CHECKS][WIDTH];
        const double *rows[2][BETWEEN_CHECKS];
        double weight = (0.5 + draw_gauss(&random) * 0.05) / 10000;
        for (int each = 0; each < LANGUAGES; each++)
            probabilities[each] = 1.0 / LANGUAGES;
        int now = 1, turn = 0, is_picked = pick(self, &random, grams, bits, now, rows[turn], scratch[turn]);
        for (int steps = 1;; steps += BETWEEN_CHECKS, now = BETWEEN_CHECKS, turn = !turn) {
            if (!is_picked)
                return -1;
            Py_ssize_t used = random.used;
            /* The next ones may not be needed. Their rows come from memory while these are worked out. */
            is_picked = pick(self, &random, grams, bits, BETWEEN_CHECKS, rows[!turn], scratch[!turn]);
            if (advance(probabilities, rows[turn], now, weight, self->compensated) || steps > MOST_STEPS) {
                random.used = used;
                break;
            }
        }
        for (int each = 0; each < LANGUAGES; each++)
            means[each] += probabilities[each] / TRIALS;
    }
    return 0;
}

static PyObject *best(const double *means)
{
    int found = 0;
    for (int each = 1; each < LANGUAGES; each++)
        if (means[each] > means[found])
            found = each;
    if (means[found] > 0.1)
        return Py_BuildValue("id", found, means[found]);
    Py_RETURN_NONE;
}

static PyObject *guess(Detector *self, PyObject *args)
{
    PyObject *text;
    int prepared;
    if (!PyArg_ParseTuple(args, "Up", &text, &prepared))
        return NULL;
    Text read = {PyUnicode_KIND(text), PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text), 0};
    byte *edited = NULL;
    if (!prepared && has_address(text)) {
        if (!(edited = PyMem_Malloc(read.count * read.kind)))
            return PyErr_NoMemory();
        read.at = memcpy(edited, read.at, read.count * read.kind);
        remove_matches(&read, ':', match_url);
        remove_matches(&read, '@', match_mail);
    }
    int plain = BY_KIND(read.kind, measure, &read);
    int failed = !plain && !prepared;
    double means[LANGUAGES] = {0};
    uint16_t *room = failed ? NULL : PyMem_Malloc((4 * read.count + BEGIN + 1) * sizeof *room);
    if (room) {
        Grams grams = {room, room + read.count + BEGIN, 0};
        failed = BY_KIND(read.kind, extract, self, read, &grams) == 0 && grams.count && detect(self, &grams, means) < 0;
        PyMem_Free(room);
    } else if (!failed) {
        PyErr_NoMemory();
    }
    PyMem_Free(edited);
    if (PyErr_Occurred())
        return NULL;
    if (failed)
        Py_RETURN_NOTIMPLEMENTED;
    return best(means);
}

/* The type */

static void detector_dealloc(Detector *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyMem_Free(self->numbers);
    PyMem_Free(self->normalized);
    PyMem_Free(self->table);
    PyMem_Free(self->first);
    PyMem_Free(self->shares);
    PyMem_Free(self->filter);
    PyMem_Free(self->few_pairs);
    PyMem_Free(self->few_triples);
    PyMem_Free(self->dense);
    PyMem_Free(self->draws);
    Py_XDECREF(self->normalize);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static int prepare_tables(Detector *self, const Py_buffer *draws)
{
    self->numbers = PyMem_Calloc(CODE_POINTS, sizeof *self->numbers);
    self->normalized = PyMem_Calloc(CODE_POINTS, sizeof *self->normalized);
    self->draws = PyMem_Malloc(draws->len + 1);
    if (!self->numbers || !self->normalized || !self->draws) {
        PyErr_NoMemory();
        return -1;
    }
    self->numbers[' '] = SPACE;
    self->known = UNKNOWN_UPPER;
    self->upper[UNKNOWN_UPPER] = 1;
    for (Py_UCS4 each = 'A'; each <= 0xFF; each++)
        if (Py_UNICODE_ISALPHA(each))
            number_of(self, each); /* the lowest numbers: see learn_few */
    self->draw_count = draws->len / 4;
    if (self->draw_count < 4) {
        PyErr_SetString(PyExc_ValueError, "too few draws");
        return -1;
    }
    const unsigned char *at = draws->buf;
    for (Py_ssize_t each = 0; each < self->draw_count; each++, at += 4)
        self->draws[each] = at[0] | at[1] << 8 | at[2] << 16 | (uint32_t)at[3] << 24;
    return 0;
}

static PyObject *detector_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(unused))
{
    PyObject *profiles, *normalize;
    Py_buffer draws;
    int compensated;
    if (!PyArg_ParseTuple(args, "O!Oy*p", &PyTuple_Type, &profiles, &normalize, &draws, &compensated))
        return NULL;
    Detector *self = (Detector *)type->tp_alloc(type, 0);
    if (self) {
        self->normalize = Py_NewRef(normalize);
        self->compensated = compensated;
        if (prepare_tables(self, &draws) < 0 || learn(self, profiles) < 0)
            Py_CLEAR(self);
    }
    PyBuffer_Release(&draws);
    return (PyObject *)self;
}

static PyMethodDef methods[] = {
    {"guess", (PyCFunction)guess, METH_VARARGS,
     "guess(text, prepared): (number of the most probable language's profile, its probability), or None where a text "
     "has nothing to go by. NotImplemented where it has accents that NGram.normalize_vi may join (what that makes of "
     "it, after URL_RE and MAIL_RE, is `prepared`), or where the draws are too few."},
    {0},
};

static PyType_Slot detector_slots[] = {
    {Py_tp_doc, "Detector(profiles, normalize, draws, compensated): langdetect with the seed that `draws` come from (32 "
                "bits each, low byte first). `profiles`: the files of the langdetect package; `normalize`: "
                "NGram.normalize; `compensated`: whether sum() compensates."},
    {Py_tp_new, detector_new},
    {Py_tp_dealloc, detector_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec detector_type = {"c4pipe.native._langdetect.Detector", sizeof(Detector), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, detector_slots};

static int execute(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &detector_type, NULL);
    int failed = !type || PyModule_AddType(module, (PyTypeObject *)type) < 0;
    Py_XDECREF(type);
    return failed ? -1 : PyModule_AddIntConstant(module, "VERSION", VERSION);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "c4pipe.native._langdetect",
    .m_doc = "langdetect, compiled.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__langdetect(void) { return PyModuleDef_Init(&definition); }
