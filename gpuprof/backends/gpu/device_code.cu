// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
//
// Device code of the measuring side: the elementwise comparison, a checksum of the inputs and the L2 flush, for the
// element type of an output, of which values.cu tells the numbers. None of it is ever timed.

#define LARGEST_DOUBLE 1.7976931348623157e308

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

// Largest absolute and relative error, and how many elements are not right. magnitude may be null: then every
// element's magnitude is 1. Any grid; *result starts as {0, 0, 0, ~0}.
extern "C" __global__ void compare(long long elements, const real *got, const double *expected,
                                   const double *magnitude, double relative, double absolute, double largest,
                                   double rounding, Comparison *result)
{
    double max_abs = 0;
    double max_rel = 0;
    unsigned long long wrong = 0;
    unsigned long long first = ~0ull;
    const double infinity = __longlong_as_double(0x7ff0000000000000ll);
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += stride) {
        const double value = value_of(got[i]);
        const double scale = magnitude ? fmin(magnitude[i], LARGEST_DOUBLE) : 1.0;
        const double free = absolute + rounding * fmin(fabs(expected[i]), LARGEST_DOUBLE);
        const bool right = is_right(value, expected[i], relative * scale + free, largest);
        if (!right) {
            ++wrong;
            first = first < (unsigned long long)i ? first : (unsigned long long)i;
        }
        const double difference = fabs(value - expected[i]);
        const double error = right && !isfinite(difference) ? 0.0 : isnan(difference) ? infinity : difference;
        const double rel = error <= free ? 0.0 : (error - free) / scale;
        max_abs = error > max_abs ? error : max_abs;
        max_rel = rel > max_rel ? rel : max_rel;
    }
    atomicMax(&result->max_abs_bits, (unsigned long long)__double_as_longlong(max_abs));
    atomicMax(&result->max_rel_bits, (unsigned long long)__double_as_longlong(max_rel));
    if (wrong) {
        atomicAdd(&result->wrong, wrong);
        atomicMin(&result->first_wrong, first);
    }
}

// How many integers differ from 64-bit references, as bits. Any grid; *result starts as {0, 0, 0, ~0}.
extern "C" __global__ void compare_integers(long long elements, const real *got, const long long *expected,
                                            Comparison *result)
{
    double max_abs = 0;
    unsigned long long wrong = 0;
    unsigned long long first = ~0ull;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += stride) {
        if ((long long)got[i] == expected[i])
            continue;
        // One double may stand for both of two integers that differ.
        const double error = fmax(fabs((double)got[i] - (double)expected[i]), 1.0);
        max_abs = error > max_abs ? error : max_abs;
        ++wrong;
        first = first < (unsigned long long)i ? first : (unsigned long long)i;
    }
    if (wrong) {
        atomicMax(&result->max_abs_bits, (unsigned long long)__double_as_longlong(max_abs));
        atomicMax(&result->max_rel_bits, (unsigned long long)__double_as_longlong(max_abs));
        atomicAdd(&result->wrong, wrong);
        atomicMin(&result->first_wrong, first);
    }
}

// Order-independent checksum of a buffer's words, to notice a kernel that writes to its inputs. Any grid.
extern "C" __global__ void checksum(long long bytes, const unsigned *data, unsigned long long *result)
{
    unsigned long long sum = 0;
    const long long words = bytes / 4;
    const long long start = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = start; i < words; i += stride)
        sum += (unsigned long long)data[i] * (2 * (unsigned long long)i + 1);
    if (start == 0)
        for (long long i = 4 * words; i < bytes; ++i)
            sum += (unsigned long long)((const unsigned char *)data)[i] * (2 * (unsigned long long)i + 1);
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

// What an event pair tells of no work at all: the floor under every time.
extern "C" __global__ void nothing() {}
