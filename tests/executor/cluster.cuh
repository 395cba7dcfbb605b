// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Blocks of a cluster; what stands in bulk.cuh comes before it.
__device__ __forceinline__ unsigned rank() {
    unsigned value;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(value));
    return value;
}
__device__ __forceinline__ unsigned mapped(const void *own, unsigned other) {
    unsigned place;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(place) : "r"(at(own)), "r"(other));
    return place;
}
template <typename T> __device__ __forceinline__ T *pointer(T *own, unsigned other) {
    unsigned long long place;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(place) : "l"(own), "r"(other));
    return reinterpret_cast<T *>(place);
}
__device__ __forceinline__ float remote(unsigned place) {
    float value;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(place) : "memory");
    return value;
}
__device__ __forceinline__ void meet() {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}
__device__ __forceinline__ void arrive_remote(u64 *b, unsigned other) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                 ::"r"(mapped(b, other)) : "memory");
}
__device__ __forceinline__ void send(void *to, float value, u64 *b, unsigned other) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];"
                 ::"r"(mapped(to, other)), "f"(value), "r"(mapped(b, other)) : "memory");
}
template <typename T> __device__ __forceinline__ void add(T *to, T value, u64 *b, unsigned other) {
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s32"
                 " [%0], %1, [%2];" ::"r"(mapped(to, other)), "r"(value), "r"(mapped(b, other)) : "memory");
}
__device__ __forceinline__ void multicast(void *to, const void *from, int bytes, u64 *b, int blocks) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1], %2, [%3], %4;"
                 ::"r"(at(to)), "l"(from), "r"(bytes), "r"(at(b)), "h"((short)blocks) : "memory");
}
__device__ __forceinline__ void pass(void *to, const void *from, int bytes, u64 *b, unsigned other) {
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];"
                 ::"r"(mapped(to, other)), "r"(at(from)), "r"(bytes), "r"(mapped(b, other)) : "memory");
}
