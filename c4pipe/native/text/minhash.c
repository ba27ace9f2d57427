/* The minima of MinHash: text/minhash.py is the reference. */

#include "text.h"

#define PRIME ((int64_t)((UINT64_C(1) << 61) - 1))
#define HASHES 512 /* that are permuted at once: they stay in the fastest cache */
#define LANES 8    /* n-grams that are hashed side by side: the compiler makes vectors of them */

typedef uint32_t Vector __attribute__((vector_size(4 * LANES)));

/* N-grams that are to be hashed: bytes that the text holds. */
typedef struct {
    Piece ngrams[LANES];
    int count;
} Batch;

/* The blocks of a message with its padding. */
static inline Py_ssize_t blocks_of(Piece message) { return (message.size + 8) / 64 + 1; }

/* Reads the 16 words of a block of a message (FIPS 180-4, 5.1.1); zeros behind its last block. */
static void read_block(Piece message, Py_ssize_t number, uint32_t words[16][LANES], int lane)
{
    byte block[64] = {0};
    Py_ssize_t left = message.size - number * 64;
    if (left > 0)
        memcpy(block, message.at + number * 64, left < 64 ? left : 64);
    if (left >= 0 && left < 64)
        block[left] = 0x80;
    if (number == blocks_of(message) - 1)
        for (int each = 0; each < 8; each++)
            block[63 - each] = (byte)((uint64_t)message.size * 8 >> 8 * each);
    for (int each = 0; each < 16; each++) {
        uint32_t word;
        memcpy(&word, block + 4 * each, 4);
        words[each][lane] = PY_BIG_ENDIAN ? word : __builtin_bswap32(word);
    }
}

#define ROTATE(value, by) ((value) << (by) | (value) >> (32 - (by)))
#define ROUNDS(from, to, function, constant)                                                                      \
    for (int each = from; each < to; each++) {                                                                    \
        Vector *word = &words[each % 16], next;                                                                   \
        if (each >= 16) {                                                                                         \
            next = words[(each + 13) % 16] ^ words[(each + 8) % 16] ^ words[(each + 2) % 16] ^ *word;             \
            *word = ROTATE(next, 1);                                                                              \
        }                                                                                                         \
        next = ROTATE(a, 5) + (function) + e + constant + *word;                                                  \
        e = d, d = c, c = ROTATE(b, 30), b = a, a = next;                                                         \
    }

/* Writes the first 8 bytes of the SHA-1 of each n-gram (FIPS 180-4, 6.1.2), as a number whose lowest byte is the first.
 * The batch is empty then. Returns how many there are. */
FOR_VECTORS static int hash_ngrams(Batch *batch, uint64_t *hashes)
{
    const uint32_t start[5] = {0x67452301u, 0xEFCDAB89u, 0x98BADCFEu, 0x10325476u, 0xC3D2E1F0u};
    uint32_t hash[5][LANES], lanes[16][LANES] = {{0}}, added[5][LANES];
    Py_ssize_t most = 0;
    int count = batch->count;
    for (int lane = 0; lane < LANES; lane++) {
        for (int each = 0; each < 5; each++)
            hash[each][lane] = start[each];
        if (lane < count && blocks_of(batch->ngrams[lane]) > most)
            most = blocks_of(batch->ngrams[lane]);
    }
    for (Py_ssize_t number = 0; number < most; number++) {
        for (int lane = 0; lane < count; lane++)
            read_block(batch->ngrams[lane], number, lanes, lane);
        Vector words[16], now[5];
        memcpy(words, lanes, sizeof words);
        memcpy(now, hash, sizeof now);
        Vector a = now[0], b = now[1], c = now[2], d = now[3], e = now[4];
        ROUNDS(0, 20, d ^ (b & (c ^ d)), 0x5A827999u)
        ROUNDS(20, 40, b ^ c ^ d, 0x6ED9EBA1u)
        ROUNDS(40, 60, (b & c) | (d & (b | c)), 0x8F1BBCDCu)
        ROUNDS(60, 80, b ^ c ^ d, 0xCA62C1D6u)
        memcpy(added, (Vector[5]){a, b, c, d, e}, sizeof added);
        for (int each = 0; each < 5; each++)
            for (int lane = 0; lane < count; lane++)
                hash[each][lane] += number < blocks_of(batch->ngrams[lane]) ? added[each][lane] : 0;
    }
    for (int lane = 0; lane < count; lane++) {
        hashes[lane] = 0;
        for (int each = 0; each < 8; each++)
            hashes[lane] |= (uint64_t)(hash[each / 4][lane] >> (24 - each % 4 * 8) & 255) << 8 * each;
    }
    batch->count = 0;
    return count;
}

/* Puts the smaller of each minimum and all permuted hashes into its place. The products are modulo 2^64. */
FOR_VECTORS static void permute(const uint64_t *hashes, Py_ssize_t count, const byte *factors, const byte *summands,
                                 int64_t *least, Py_ssize_t numbers)
{
    for (Py_ssize_t number = 0; number < numbers; number++) {
        uint64_t factor, summand;
        memcpy(&factor, factors + 8 * number, 8);
        memcpy(&summand, summands + 8 * number, 8);
        int64_t smallest = least[number];
        for (Py_ssize_t each = 0; each < count; each++) {
            uint64_t value = hashes[each] * factor + summand;
            int64_t rest = (int64_t)(value & PRIME) + (int64_t)(value >> 61);
            rest = rest >= PRIME ? rest - PRIME : rest;
            smallest = rest < smallest ? rest : smallest;
        }
        least[number] = smallest;
    }
}

/* Writes the UTF-8 of characters, of a lone surrogate, too; returns where that ends. */
static inline byte *encode(int kind, const void *text, Py_ssize_t first, Py_ssize_t end, byte *to)
{
    for (Py_ssize_t each = first; each < end; each++) {
        Py_UCS4 character = PyUnicode_READ(kind, text, each);
        if (character < 0x80) {
            *to++ = (byte)character;
            continue;
        }
        int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
        *to++ = (byte)((0xF0 << (3 - more)) | character >> 6 * more);
        while (more--)
            *to++ = (byte)(0x80 | (character >> 6 * more & 63));
    }
    return to;
}

static PyObject *minima(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *joined, *made = NULL;
    Py_buffer given, factors, summands;
    Py_ssize_t size, words;
    if (!PyArg_ParseTuple(args, "Uy*ny*y*", &joined, &given, &size, &factors, &summands))
        return NULL;
    int kind = PyUnicode_KIND(joined);
    int64_t *ends = read_ends(joined, &given, &words); /* they become the ends of the words in bytes */
    Py_ssize_t numbers = factors.len / 8, waiting = 0;
    byte *text = ends ? PyMem_Malloc(PyUnicode_GET_LENGTH(joined) * (kind == 4 ? 4 : kind == 2 ? 3 : 2) + words + 1) : NULL;
    if (!text || size < 1 || factors.len != summands.len) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "an n-gram has a word, and each factor has a summand");
        goto end;
    }
    numbers = words < size ? 0 : numbers; /* fewer words have no minima */
    byte *at = text;
    for (Py_ssize_t word = 0, first = 0; word < words; word++) {
        Py_ssize_t behind = ends[word + 1];
        at = encode(kind, PyUnicode_DATA(joined), first, behind, at);
        *at++ = ' ';
        ends[word + 1] = at - text;
        first = behind;
    }
    if (!(made = PyBytes_FromStringAndSize(NULL, numbers * 8)))
        goto end;
    int64_t *least = (int64_t *)PyBytes_AS_STRING(made);
    for (Py_ssize_t number = 0; number < numbers; number++)
        least[number] = PRIME;
    uint64_t hashes[HASHES];
    Batch batches[2] = {{.count = 0}, {.count = 0}}; /* of n-grams in one block, and of longer n-grams */
    for (Py_ssize_t word = 0; word + size <= words; word++) {
        Piece ngram = {text + ends[word], ends[word + size] - 1 - ends[word]};
        Batch *batch = &batches[blocks_of(ngram) > 1];
        batch->ngrams[batch->count++] = ngram;
        if (batch->count == LANES)
            waiting += hash_ngrams(batch, hashes + waiting);
        if (waiting > HASHES - 3 * LANES || word + size == words) {
            for (int each = 0; each < 2 && word + size == words; each++)
                waiting += hash_ngrams(&batches[each], hashes + waiting);
            permute(hashes, waiting, factors.buf, summands.buf, least, numbers);
            waiting = 0;
        }
    }
end:
    PyMem_Free(text);
    PyMem_Free(ends);
    PyBuffer_Release(&factors);
    PyBuffer_Release(&summands);
    return made;
}

PyMethodDef minhash_functions[] = {
    {"minima", minima, METH_VARARGS,
     "Returns the smallest of all permuted hashes of n-grams of words, for each factor and summand, as 64-bit numbers; none "
     "for fewer words than an n-gram has. The words come joined, with 0 and the end of each."},
    {0},
};
