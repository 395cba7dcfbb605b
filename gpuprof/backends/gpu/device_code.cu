// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
//
// Device code of the measuring side: the elementwise comparison, what is done to outputs around a timed launch,
// checksums and the L2 flush, for the element type of an output, of which values.cu tells the numbers. None of it is
// ever timed. Loops with long bodies are not unrolled, which would take the compiler half as long again.

#define LARGEST_DOUBLE 1.7976931348623157e308

// 64 bits that nobody guesses without the key (the finalizer of splitmix64).
static __device__ unsigned long long mixed(unsigned long long place, unsigned long long key)
{
    unsigned long long bits = key + (place + 1) * 0x9e3779b97f4a7c15ull;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
    return bits ^ (bits >> 31);
}

// References lie in device memory, where a kernel could find them, and so they are hidden there: as their bits,
// exclusive or with bits that follow from a key. A key of 0 hides nothing.
static __device__ unsigned long long shown(unsigned long long bits, long long place, unsigned long long key)
{
    return key ? bits ^ mixed(place, key) : bits;
}

static __device__ double reference_at(const unsigned long long *hidden, long long place, unsigned long long key)
{
    return __longlong_as_double((long long)shown(hidden[place], place, key));
}

// Hides words, or shows them again. Any grid.
extern "C" __global__ void hide(long long words, unsigned long long *data, unsigned long long key)
{
    const long long stride = (long long)gridDim.x * blockDim.x;
#pragma unroll 1
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += stride)
        data[i] = shown(data[i], i, key);
}

struct Comparison {
    unsigned long long max_abs_bits; // the bits of a non-negative double order like the double itself
    unsigned long long max_rel_bits;
    unsigned long long wrong;
    unsigned long long first_wrong;
};

// The rule of gpuprof/problems/check.py: is `got` within `allowed` of `expected`, or an infinity where the element
// type, whose largest finite value is `largest`, may have overflowed? NaN never is.
static __device__ bool is_right(double got, double expected, double allowed, double largest)
{
    if (got == expected || fabs(got - expected) <= allowed)
        return true;
    return isinf(got) && (got > 0) == (expected > 0) && fabs(expected) + allowed >= largest;
}

// What an output's elements are held against: references, and magnitudes unless every one is 1, which the key hides;
// `exact` are integers of which none may be off, whose references are integers too.
struct Expected {
    const unsigned long long *hidden;
    const unsigned long long *magnitude;
    double relative, absolute, largest, rounding;
    unsigned long long key;
    int exact;
};

// Whether an element is right, and its absolute and relative error.
static __device__ bool judged(const real *got, long long place, Expected by, double &error, double &share)
{
    if (by.exact) {
        const long long expected = (long long)shown(by.hidden[place], place, by.key);
        // One double may stand for both of two integers that differ.
        error = share = fmax(fabs((double)got[place] - (double)expected), 1.0);
        if ((long long)got[place] == expected)
            error = share = 0;
        return error == 0;
    }
    const double value = value_of(got[place]);
    const double expected = reference_at(by.hidden, place, by.key);
    const double scale = by.magnitude ? fmin(reference_at(by.magnitude, place, by.key), LARGEST_DOUBLE) : 1.0;
    const double free = by.absolute + by.rounding * fmin(fabs(expected), LARGEST_DOUBLE);
    const bool right = is_right(value, expected, by.relative * scale + free, by.largest);
    const double difference = fabs(value - expected);
    const double infinity = __longlong_as_double(0x7ff0000000000000ll);
    error = right && !isfinite(difference) ? 0.0 : isnan(difference) ? infinity : difference;
    share = error <= free ? 0.0 : (error - free) / scale;
    return right;
}

// Largest absolute and relative error, and how many elements are not right. Any grid; *result starts as {0, 0, 0, ~0}.
extern "C" __global__ void compare(long long elements, const real *got, Expected by, Comparison *result)
{
    double max_abs = 0;
    double max_rel = 0;
    unsigned long long wrong = 0;
    unsigned long long first = ~0ull;
    const long long stride = (long long)gridDim.x * blockDim.x;
#pragma unroll 1
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += stride) {
        double error, share;
        if (!judged(got, i, by, error, share)) {
            ++wrong;
            first = first < (unsigned long long)i ? first : (unsigned long long)i;
        }
        max_abs = error > max_abs ? error : max_abs;
        max_rel = share > max_rel ? share : max_rel;
    }
    atomicMax(&result->max_abs_bits, (unsigned long long)__double_as_longlong(max_abs));
    atomicMax(&result->max_rel_bits, (unsigned long long)__double_as_longlong(max_rel));
    if (wrong) {
        atomicAdd(&result->wrong, wrong);
        atomicMin(&result->first_wrong, first);
    }
}

// The elements of an output that are looked at around a timed launch: all of few, otherwise one in each of `picks`
// parts, as the launch's secret number says.
static __device__ long long picked(long long i, long long elements, long long picks, unsigned long long secret)
{
    const long long part = i * elements / picks;
    const long long size = (i + 1) * elements / picks - part;
    return elements <= picks ? i : part + (long long)(mixed(i, secret) % (unsigned long long)size);
}

// Another number than the element's, of an ordinary size and so not to be told from a result.
template <typename Bits, int exponent, int fraction, bool finite>
static __device__ float_bits<Bits, exponent, fraction, finite> spoiled(float_bits<Bits, exponent, fraction, finite> element)
{
    const unsigned sign = 1u << (exponent + fraction), one = ((1u << (exponent - 1)) - 1) << fraction;
    return {(Bits)(element.bits & (sign - 1) ? element.bits ^ (sign | 1u << (fraction - 1)) : one)};
}
template <typename T> static __device__ T spoiled(T element)
{
    if ((T)0.5 == (T)0) // integers
        return element + (T)1;
    return element == (T)0 ? (T)1 : -element - element / (T)2;
}

// Before a timed launch: puts other numbers in the picked elements, so that a launch that leaves out its work shows.
// Any grid.
extern "C" __global__ void spoil(long long elements, real *data, long long picks, unsigned long long secret)
{
    const long long count = elements < picks ? elements : picks;
    const long long stride = (long long)gridDim.x * blockDim.x;
#pragma unroll 1
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        const long long place = picked(i, elements, picks, secret);
        data[place] = spoiled(data[place]);
    }
}

// After it: adds how many of the picked elements are not right. Any grid.
extern "C" __global__ void compare_picked(long long elements, const real *got, Expected by, long long picks,
                                          unsigned long long secret, unsigned long long *wrong)
{
    const long long count = elements < picks ? elements : picks;
    const long long stride = (long long)gridDim.x * blockDim.x;
    double error, share;
#pragma unroll 1
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        if (!judged(got, picked(i, elements, picks, secret), by, error, share))
            atomicAdd(wrong, 1ull);
}

// Exchanges the content of two buffers. Any grid.
extern "C" __global__ void exchange(long long bytes, unsigned char *one, unsigned char *other)
{
    const long long stride = (long long)gridDim.x * blockDim.x;
    const long long words = bytes / 16;
    const long long start = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (long long i = start; i < words; i += stride) {
        const uint4 kept = ((uint4 *)one)[i];
        ((uint4 *)one)[i] = ((uint4 *)other)[i];
        ((uint4 *)other)[i] = kept;
    }
#pragma unroll 1
    for (long long i = 16 * words + start; i < bytes; i += stride) {
        const unsigned char kept = one[i];
        one[i] = other[i];
        other[i] = kept;
    }
}

// A variable of a module, and where its first content is kept, from a multiple of 16 bytes on.
struct Variable {
    unsigned char *data;
    unsigned long long bytes;
    const unsigned char *first;
};

// Gives variables their first content again, all in one launch. Any grid.
extern "C" __global__ void restore(int count, const Variable *variables)
{
    const long long stride = (long long)gridDim.x * blockDim.x;
    const long long start = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (int v = 0; v < count; ++v) {
        const Variable one = variables[v];
        const long long bytes = (long long)one.bytes;
        const long long words = (unsigned long long)one.data % 16 ? 0 : bytes / 16;
        for (long long i = start; i < words; i += stride)
            ((uint4 *)one.data)[i] = ((const uint4 *)one.first)[i];
        for (long long i = 16 * words + start; i < bytes; i += stride)
            one.data[i] = one.first[i];
    }
}

// Order-independent checksum of a buffer's words, to notice a kernel that writes to what is not its output: none knows
// the key, and so none can write so that the sum stays. Any grid.
extern "C" __global__ void checksum(long long bytes, const unsigned *data, unsigned long long key,
                                    unsigned long long *result)
{
    unsigned long long sum = 0;
    const long long words = bytes / 4;
    const long long start = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = start; i < words; i += stride)
        sum += mixed(data[i], mixed(i, key));
    if (start == 0)
#pragma unroll 1
        for (long long i = 4 * words; i < bytes; ++i)
            sum += mixed(((const unsigned char *)data)[i], mixed(i, key));
    atomicAdd(result, sum);
}

// Reads a buffer larger than L2, so that the cache then holds clean lines of no use to anybody: a flush that
// writes would leave dirty lines, whose write-back the next kernel would pay for. Any grid.
extern "C" __global__ void flush_l2(long long quads, const uint4 *data, unsigned *sink)
{
    unsigned sum = 0;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < quads; i += stride) {
        const uint4 quad = __ldcg(&data[i]);
        sum |= quad.x | quad.y | quad.z | quad.w;
    }
    if (sum) // the buffer holds zeros: never taken, but the compiler cannot know
        *sink = sum;
}

// Takes an SM's whole shared memory and leaves numbers of no use there. One block for each SM, which stays long enough
// that no other gets its place.
extern "C" __global__ void scribble_shared(int words, unsigned long long secret)
{
    extern __shared__ unsigned long long whole[];
    const long long start = clock64();
    for (int i = threadIdx.x; i < words; i += blockDim.x)
        whole[i] = mixed(i, secret);
    // Stores that nobody reads are left out otherwise.
    asm volatile("" ::"l"(whole) : "memory");
    while (clock64() - start < 8192)
        ;
}

// Lines of an array that a kernel asked the L2 cache to hold longest are like any other again, so that a flush evicts
// them. Any grid.
extern "C" __global__ void demote(long long bytes, const unsigned char *data)
{
#if __CUDA_ARCH__ >= 800
    const long long stride = 128ll * gridDim.x * blockDim.x;
    const unsigned char *const end = data + bytes;
    const unsigned char *line = (const unsigned char *)((unsigned long long)data / 128 * 128);
    for (line += 128ll * ((long long)blockIdx.x * blockDim.x + threadIdx.x); line < end; line += stride)
        asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(__cvta_generic_to_global(line)) : "memory");
#endif
}

// What an event pair tells of no work at all: the floor under every time.
extern "C" __global__ void nothing() {}
