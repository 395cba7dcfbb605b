// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// Copies to shared memory that a thread starts and does not wait for.

// Start a copy of 4, 8 or 16 bytes; without `exists` it writes zeros and reads nothing. The L2
// cache fetches the AROUND bytes, 128 or 256, around an element at once; 0 for what it does by itself. 16
// bytes pass by the L1 cache, and want to lie in their sector as in memory, or are CACHED there.
template <int BYTES, int AROUND = 0, bool CACHED = false>
static __device__ __forceinline__ void copy(void *target, const void *source, bool exists = true)
{
    const unsigned address = (unsigned)__cvta_generic_to_shared(target);
#define COPY(HOW)                                                                                                      \
    asm volatile(HOW " [%0], [%1], %3, %2;" ::"r"(address), "l"(source), "r"(exists ? BYTES : 0),                      \
                 "n"(BYTES)                                                                                            \
                 : "memory")
    if (BYTES == 16 && !CACHED && AROUND == 128)
        COPY("cp.async.cg.shared.global.L2::128B");
    else if (BYTES == 16 && !CACHED && AROUND == 256)
        COPY("cp.async.cg.shared.global.L2::256B");
    else if (BYTES == 16 && !CACHED)
        COPY("cp.async.cg.shared.global");
    else if (AROUND == 128)
        COPY("cp.async.ca.shared.global.L2::128B");
    else if (AROUND == 256)
        COPY("cp.async.ca.shared.global.L2::256B");
    else
        COPY("cp.async.ca.shared.global");
#undef COPY
}
static __device__ __forceinline__ void close_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
// Wait until all of this thread's groups of copies but the last PENDING have arrived.
template <int PENDING> static __device__ __forceinline__ void wait_for_groups()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
// Wait until all of this thread's copies have arrived.
static __device__ __forceinline__ void wait_for_copies()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}
