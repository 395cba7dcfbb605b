// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "heap"
verdict = "ok"

[malloc_of_each_lane]
rule = "Each lane that asks gets memory of its own."
[malloc_in_one_branch]
rule = "Lanes that do not ask get nothing."
[malloc_by_lane]
rule = "Each lane may ask for another size."
[malloc_is_aligned]
rule = "Memory of malloc begins at a multiple of 16 bytes."
expected = [0]
[malloc_too_much]
rule = "More than the heap has is address 0."
expected = [1]
[malloc_and_free_again]
rule = "What is freed can be taken again, without end."
[malloc_shared_by_a_block]
rule = "One lane asks, and all of its block use the memory."
block = 64
count = 64
[malloc_past_the_end]
rule = "An access far behind what malloc gave is outside of every allocation."
verdict = ""
risky = true
[free_of_null]
rule = "Freeing address 0 does nothing."
expected = [3]
[free_twice]
rule = "What was freed must not be freed again."
verdict = "undefined"
faults = ["out of bounds"]
[free_then_read]
rule = "What was freed must not be read."
verdict = "undefined"
faults = ["out of bounds"]
[new_and_delete]
rule = "new and delete of objects with virtual functions."
[list_of_nodes]
rule = "Each lane builds a list, walks through it and frees it."
*/

#define SELF threadIdx.x

extern "C" __global__ void malloc_of_each_lane(unsigned *out) {
    unsigned *mine = (unsigned *)malloc(16);
    for (unsigned i = 0; i < 4; ++i) mine[i] = SELF * 4 + i;
    __syncwarp();
    out[SELF] = mine[0] + mine[3] * 256;
    free(mine);
}
extern "C" __global__ void malloc_in_one_branch(unsigned *out) {
    unsigned *mine = 0;
    if (SELF % 3 == 1) mine = (unsigned *)malloc(8);
    if (mine) mine[1] = SELF;
    out[SELF] = mine ? mine[1] : 99;
    free(mine);
}
extern "C" __global__ void malloc_by_lane(unsigned *out) {
    const unsigned n = SELF + 1;
    unsigned char *mine = (unsigned char *)malloc(n);
    for (unsigned i = 0; i < n; ++i) mine[i] = i + SELF;
    unsigned sum = 0;
    for (unsigned i = 0; i < n; ++i) sum = sum * 3 + mine[n - 1 - i];
    out[SELF] = sum;
    free(mine);
}
extern "C" __global__ void malloc_is_aligned(unsigned *out) {
    void *first = malloc(1 + SELF), *second = malloc(3);
    out[SELF] = ((unsigned long long)first | (unsigned long long)second) & 15;
    free(first);
    free(second);
}
extern "C" __global__ void malloc_too_much(unsigned *out) { out[SELF] = malloc(64ull << 20) == 0; }
extern "C" __global__ void malloc_and_free_again(unsigned *out) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 12; ++i) {
        unsigned *mine = (unsigned *)malloc(64 << 10);
        if (mine) {
            mine[i] = SELF + i;
            sum += mine[i];
        }
        free(mine);
    }
    out[SELF] = sum;
}
extern "C" __global__ void malloc_shared_by_a_block(unsigned *out) {
    __shared__ unsigned *ours;
    if (SELF == 0) ours = (unsigned *)malloc(256);
    __syncthreads();
    ours[SELF] = SELF * 3;
    __syncthreads();
    out[SELF] = ours[63 - SELF];
    __syncthreads();
    if (SELF == 0) free(ours);
}
extern "C" __global__ void malloc_past_the_end(unsigned *out) {
    unsigned *mine = (unsigned *)malloc(16);
    mine[64u << 20] = 5;
    out[SELF] = mine[64u << 20];
}
extern "C" __global__ void free_of_null(unsigned *out) {
    free(0);
    out[SELF] = 3;
}
extern "C" __global__ void free_twice(unsigned *out) {
    void *mine = malloc(16);
    out[SELF] = mine != 0;
    free(mine);
    free(mine);
}
extern "C" __global__ void free_then_read(unsigned *out) {
    volatile unsigned *mine = (volatile unsigned *)malloc(16);
    mine[0] = SELF;
    free((void *)mine);
    out[SELF] = mine[0];
}

struct Animal {
    unsigned legs;
    __device__ Animal(unsigned legs) : legs(legs) {}
    __device__ virtual ~Animal() {}
    __device__ virtual unsigned told() const { return legs; }
};
struct Bird : Animal {
    __device__ Bird() : Animal(2) {}
    __device__ unsigned told() const override { return legs + 100 * SELF; }
};
extern "C" __global__ void new_and_delete(unsigned *out) {
    Animal *mine = SELF & 1 ? new Bird : new Animal(4);
    out[SELF] = mine->told();
    delete mine;
}

struct Node {
    unsigned value;
    Node *next;
};
extern "C" __global__ void list_of_nodes(unsigned *out) {
    Node *head = 0;
    for (unsigned i = 0; i < 1 + SELF % 4; ++i) {
        Node *node = (Node *)malloc(sizeof(Node));
        node->value = i * 10 + SELF;
        node->next = head;
        head = node;
    }
    unsigned sum = 0;
    while (head) {
        sum = sum * 5 + head->value;
        Node *next = head->next;
        free(head);
        head = next;
    }
    out[SELF] = sum;
}
