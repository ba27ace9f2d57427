/* Keys of a page: of its URL, its moment and its capture. text/hashes.py and wet/page.py are the reference; what is
 * unusual is left to Python. */

#include "text.h"

#define MOST_URL 2000 /* bytes of a URL whose keys C computes */

static int read_digits(const byte *at, int count)
{
    int number = 0;
    for (; count--; at++)
        number = number * 10 + (*at - '0');
    return number;
}

/* Whether a date is of the form that nearly all have, 2019-04-18T10:12:43Z, and a moment: its microseconds since 1970. */
static int read_usual_date(Piece date, int64_t *moment)
{
    static const char form[] = "0000-00-00T00:00:00Z";
    static const byte days[] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (date.size != sizeof form - 1)
        return 0;
    for (Py_ssize_t each = 0; each < date.size; each++)
        if (form[each] == '0' ? date.at[each] < '0' || date.at[each] > '9' : date.at[each] != form[each])
            return 0;
    int year = read_digits(date.at, 4), month = read_digits(date.at + 5, 2), day = read_digits(date.at + 8, 2);
    int hour = read_digits(date.at + 11, 2), minute = read_digits(date.at + 14, 2), second = read_digits(date.at + 17, 2);
    int leap = month == 2 && year % 4 == 0 && (year % 100 || year % 400 == 0);
    if (!year || !month || month > 12 || !day || day > days[month] + leap || hour > 23 || minute > 59 || second > 59)
        return 0;
    /* Days of years that begin in March, in eras of 400 years (Hinnant, "chrono-Compatible Low-Level Date Algorithms") */
    int from_march = month > 2 ? month - 3 : month + 9, era_year = (year -= month <= 2) % 400;
    int64_t total = year / 400 * (int64_t)146097 + era_year * 365 + era_year / 4 - era_year / 100 - 719468;
    total += (153 * from_march + 2) / 5 + day - 1;
    *moment = (((total * 24 + hour) * 60 + minute) * 60 + second) * 1000000;
    return 1;
}

static int begins(Piece text, const char *start)
{
    Py_ssize_t size = strlen(start);
    return text.size >= size && !memcmp(text.at, start, size);
}

/* The URL without scheme, www., a tracking query and slashes at the end; at is NULL where Python has to: there is another
 * scheme behind the first, or no scheme, and `anywhere` cuts both. */
static Piece normal_url(Piece url, int anywhere)
{
    Py_ssize_t skip = begins(url, "https://") ? 8 : begins(url, "http://") ? 7 : 0;
    url = (Piece){url.at + skip, url.size - skip};
    for (Py_ssize_t at = 0; anywhere && at + 3 <= url.size; at++)
        if (!skip || !memcmp(url.at + at, "://", 3))
            return (Piece){NULL, 0};
    if (begins(url, "www."))
        url = (Piece){url.at + 4, url.size - 4};
    for (Py_ssize_t at = 0; at < url.size; at++) {
        if (url.at[at] != '?')
            continue;
        Piece rest = {url.at + at + 1, url.size - at - 1};
        if (begins(rest, "utm_") || begins(rest, "ref") || begins(rest, "feed"))
            url.size = at;
    }
    while (url.size && url.at[url.size - 1] == '/')
        url.size--;
    return url;
}

static inline uint32_t rotate32(uint32_t value, int by) { return value << by | value >> (32 - by); }

/* MurmurHash3 (x86, 32 bits), seed 0 */
static uint32_t murmur32(const byte *at, Py_ssize_t size)
{
    uint32_t hash = 0, word;
    Py_ssize_t left = size;
    for (; left >= 4; left -= 4, at += 4) {
        memcpy(&word, at, 4);
        hash = rotate32(hash ^ rotate32(word * 0xCC9E2D51u, 15) * 0x1B873593u, 13) * 5 + 0xE6546B64u;
    }
    word = 0;
    memcpy(&word, at, left);
    if (left)
        hash ^= rotate32(word * 0xCC9E2D51u, 15) * 0x1B873593u;
    hash ^= (uint32_t)size;
    hash = (hash ^ hash >> 16) * 0x85EBCA6Bu;
    hash = (hash ^ hash >> 13) * 0xC2B2AE35u;
    return hash ^ hash >> 16;
}

int find_keys(Piece url, Piece date, Piece body, int anywhere, Keys *keys)
{
    byte capture[MOST_URL + 32];
    Piece normal = normal_url(url, anywhere);
    if (PY_BIG_ENDIAN || !normal.at || url.size > MOST_URL || !read_usual_date(date, &keys->captured))
        return 0;
    memcpy(capture, url.at, url.size);
    capture[url.size] = '\n';
    memcpy(capture + url.size + 1, date.at, date.size);
    keys->url = murmur(normal.at, normal.size, 0);
    keys->tie = murmur(body.at, body.size, murmur32(capture, url.size + 1 + date.size));
    return 1;
}
