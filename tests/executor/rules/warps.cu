// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "warp operations"

[syncwarp_two_branches]
rule = "__syncwarp with the full mask waits for lanes that reach it from another branch."
verdict = "ok"
risky = true
[vote_two_branches]
rule = "A ballot with the full mask gathers lanes from two branches."
verdict = "ok"
risky = true
expected = ["55555555"]
[shuffle_two_branches]
rule = "A shuffle with the full mask exchanges with lanes that reach it from another branch."
risky = true
[reduce_two_branches]
rule = "redux with the full mask adds the values of lanes in two branches."
risky = true
[match_two_branches]
rule = "match.any with the full mask compares lanes in two branches."
risky = true
[vote_masks_by_branch]
rule = "Each branch may vote with its own mask."
verdict = "ok"
[vote_mask_in_register]
rule = "The mask of a vote may come from a register, another one in each half of the warp."
verdict = "ok"
[syncwarp_partial_three_branches]
rule = "Masks of three branches that pair lanes across the warp: each waits for its own."
verdict = "ok"
risky = true
[syncwarp_in_a_loop]
rule = "Lanes with different numbers of turns meet at __syncwarp with the mask of those that still turn."
verdict = "ok"
[syncwarp_orders_shared]
rule = "__syncwarp orders shared memory among its lanes."
verdict = "ok"
expected = [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14, 17, 16, 19, 18, 21, 20, 23, 22, 25, 24, 27, 26, 29, 28, 31, 30]
[syncwarp_half_does_not_order_others]
rule = "__syncwarp(0xffff) orders nothing for the other sixteen lanes: a race."
verdict = "undefined"
faults = ["shared-memory race"]
[vote_without_exited_lanes]
rule = "Lanes that have exited no longer count for a vote that names them."
count = 32
defined = [[16, 32]]
[syncwarp_without_exited_lanes]
rule = "__syncwarp with the full mask does not wait for lanes that have exited."
count = 32
defined = [[16, 32]]
[shuffle_from_exited_lane]
rule = "A shuffle that reads from an exited lane gives an undefined value."
defined = [[16, 24]]
verdict = "undefined"
faults = ["shuffle from a lane that takes no part"]
risky = false
[shuffle_from_lane_outside_mask]
rule = "A shuffle from a lane outside the mask gives an undefined value."
defined = [[1, 16]]
verdict = "undefined"
faults = ["shuffle from a lane that takes no part"]
risky = false
[vote_lane_outside_its_mask]
rule = "A lane that votes with a mask without itself breaks the rule."
verdict = "undefined"
risky = true
faults = ["barrier"]
[vote_mask_of_waiting_lanes]
rule = "A vote that names lanes that never come waits for ever, unless they exit."
count = 32
defined = [[0, 16]]
risky = true
[masks_disagree]
rule = "Two lanes that name each other with different masks break the rule."
verdict = "undefined"
risky = true
faults = ["barrier"]
[elect_partial]
rule = "elect.sync chooses one lane of its mask; the card's is the lowest."
count = 32
[match_all_disagree]
rule = "match.all gives 0 and a false predicate where a lane differs."
verdict = "ok"
expected = [0]
[match_any_64]
rule = "match.any compares all 64 bits."
verdict = "ok"
expected = ["55555555", "aaaaaaaa", "55555555", "aaaaaaaa", "55555555", "aaaaaaaa", "55555555", "aaaaaaaa", "55555555", "aaaaaaaa",
    "55555555", "aaaaaaaa", "55555555", "aaaaaaaa", "55555555", "aaaaaaaa", "55555555", "aaaaaaaa", "55555555", "aaaaaaaa", "55555555",
    "aaaaaaaa", "55555555", "aaaaaaaa", "55555555", "aaaaaaaa", "55555555", "aaaaaaaa", "55555555", "aaaaaaaa", "55555555", "aaaaaaaa"]
[vote_uni]
rule = "vote.uni is true when all lanes of the mask agree."
verdict = "ok"
expected = [2]
[early_exit_before_syncthreads]
rule = "__syncthreads no longer waits for warps that have exited."
block = 64
count = 64
defined = [[32, 64]]
[divergent_loop_reconverges]
rule = "After a loop with different numbers of turns a full vote holds."
verdict = "ok"
expected = ["ffffffff"]
[switch_of_four]
rule = "Four cases of a switch, each with a shuffle of its own lanes, with a mask that the case computes."
verdict = "ok"

[[family]]
name = "shfl_{mode}_{width}_out_of_range"
line = 'SHUFFLE({name}, "{mode}", {width})'
rule = "shfl.{mode} in segments of {width} lanes, by an amount of the lane's own: out of range it keeps its own value."
verdict = "ok"
mode = ["up", "down", "bfly", "idx"]
width = ["8", "16", "32"]

[[family]]
name = "shfl_{mode}_predicate_{width}"
line = 'SHUFFLE_PREDICATE({name}, "{mode}", {width})'
rule = "shfl.{mode} says by its predicate whether the source was in range."
verdict = "ok"
mode = ["up", "down", "bfly", "idx"]
width = ["4", "32"]

[[family]]
name = "redux_{op}_{type}"
line = 'REDUX({name}, "{op}", "{type}")'
rule = "redux.{op}.{type} over 20 of the lanes: signs count, sums wrap."
verdict = "ok"
count = 32
op = ["add", "min", "max"]
type = ["u32", "s32"]

[[family]]
name = "redux_{op}_{type}"
line = 'REDUX({name}, "{op}", "{type}")'
rule = "redux.{op}.{type} over 20 of the lanes."
verdict = "ok"
count = 32
op = ["and", "or", "xor"]
type = ["b32"]
*/

#define SHUFFLE(NAME, MODE, WIDTH)                                                                         \
    extern "C" __global__ void NAME(unsigned *out) {                                                       \
        const unsigned amount = threadIdx.x * 7 % 37;                                                      \
        const unsigned clamp = (32 - WIDTH) << 8 | (MODE[0] == 'u' ? 0 : 31);                              \
        asm volatile("shfl.sync." MODE ".b32 %0, %1, %2, %3, -1;"                                          \
                     : "=r"(out[threadIdx.x]) : "r"(100 + threadIdx.x), "r"(amount), "r"(clamp));          \
    }

#define SHUFFLE_PREDICATE(NAME, MODE, WIDTH)                                                               \
    extern "C" __global__ void NAME(unsigned *out) {                                                       \
        const unsigned clamp = (32 - WIDTH) << 8 | (MODE[0] == 'u' ? 0 : 31);                              \
        asm volatile("{ .reg .pred p; .reg .b32 t; shfl.sync." MODE ".b32 t|p, %1, %2, %3, -1;"            \
                     "selp.u32 %0, 1, 0, p; }"                                                             \
                     : "=r"(out[threadIdx.x]) : "r"(threadIdx.x), "r"(threadIdx.x % 9), "r"(clamp));       \
    }

#define REDUX(NAME, OP, TYPE)                                                                              \
    extern "C" __global__ void NAME(unsigned *out) {                                                       \
        unsigned value = threadIdx.x * 0x9e3779b9u ^ 0x5bd1e995u;                                          \
        if (threadIdx.x < 20)                                                                              \
            asm volatile("redux.sync." OP "." TYPE " %0, %0, 0xfffff;" : "+r"(value));                     \
        out[threadIdx.x] = value;                                                                          \
    }

#define FULL 0xffffffffu
#define LANE threadIdx.x

extern "C" __global__ void syncwarp_two_branches(unsigned *out) {
    __shared__ volatile unsigned words[32];
    words[LANE] = 1 + LANE;
    if (LANE % 2) {
        words[LANE] = 100 + LANE;
        asm volatile("bar.warp.sync -1;" ::: "memory");
        out[LANE] = words[LANE ^ 1];
    } else {
        words[LANE] = 200 + LANE;
        asm volatile("bar.warp.sync -1;" ::: "memory");
        out[LANE] = words[LANE ^ 1] + 1000;
    }
}

extern "C" __global__ void vote_two_branches(unsigned *out) {
    unsigned votes;
    if (LANE % 2)
        asm volatile("{ .reg .pred p; setp.ne.u32 p, 0, 0; vote.sync.ballot.b32 %0, p, -1; }" : "=r"(votes));
    else
        asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; vote.sync.ballot.b32 %0, p, -1; }" : "=r"(votes));
    out[LANE] = votes;
}

extern "C" __global__ void shuffle_two_branches(unsigned *out) {
    unsigned value = 10 * LANE;
    if (LANE % 2)
        asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(value));
    else
        asm volatile("add.u32 %0, %0, 5; shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(value));
    out[LANE] = value;
}

extern "C" __global__ void reduce_two_branches(unsigned *out) {
    unsigned value = LANE;
    if (LANE % 2)
        asm volatile("redux.sync.add.u32 %0, %0, -1;" : "+r"(value));
    else
        asm volatile("add.u32 %0, %0, 100; redux.sync.add.u32 %0, %0, -1;" : "+r"(value));
    out[LANE] = value;
}

extern "C" __global__ void match_two_branches(unsigned *out) {
    unsigned value = LANE / 8;
    if (LANE % 2)
        asm volatile("match.any.sync.b32 %0, %0, -1;" : "+r"(value));
    else
        asm volatile("xor.b32 %0, %0, 0; match.any.sync.b32 %0, %0, -1;" : "+r"(value));
    out[LANE] = value;
}

extern "C" __global__ void vote_masks_by_branch(unsigned *out) {
    if (LANE < 10)
        out[LANE] = __ballot_sync(0x3ffu, LANE % 2);
    else
        out[LANE] = __ballot_sync(~0x3ffu, LANE % 3 == 0);
}

extern "C" __global__ void vote_mask_in_register(unsigned *out) {
    const unsigned mask = LANE < 16 ? 0xffffu : 0xffff0000u;
    out[LANE] = __ballot_sync(mask, LANE % 5 == 0);
}

extern "C" __global__ void syncwarp_partial_three_branches(unsigned *out) {
    __shared__ volatile unsigned words[32];
    words[LANE] = LANE;
    const unsigned partner = 31 - LANE, pair = 1u << LANE | 1u << partner;
    if (LANE % 3 == 0) {
        words[LANE] += 100;
        __syncwarp(pair);
    } else if (LANE % 3 == 1) {
        words[LANE] += 200;
        __syncwarp(pair);
    } else {
        words[LANE] += 300;
        __syncwarp(pair);
    }
    out[LANE] = words[partner];
}

extern "C" __global__ void syncwarp_in_a_loop(unsigned *out) {
    __shared__ volatile unsigned sums[32];
    sums[LANE] = 0;
    __syncwarp();
    for (unsigned turn = 0; turn <= LANE; ++turn) {
        const unsigned turning = FULL << turn;
        if (LANE == 31)
            sums[turn] = 1000 + turn;
        __syncwarp(turning);
        out[LANE] = sums[turn];
        __syncwarp(turning);
    }
}

extern "C" __global__ void syncwarp_orders_shared(unsigned *out) {
    __shared__ unsigned words[32];
    words[LANE] = LANE;
    __syncwarp();
    out[LANE] = words[LANE ^ 1];
}

extern "C" __global__ void syncwarp_half_does_not_order_others(unsigned *out) {
    __shared__ unsigned words[32];
    words[LANE] = LANE;
    if (LANE < 16)
        __syncwarp(0xffffu);
    out[LANE] = words[31 - LANE];
}

extern "C" __global__ void vote_without_exited_lanes(unsigned *out) {
    if (LANE < 16)
        return;
    asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; vote.sync.ballot.b32 %0, p, -1; }" : "=r"(out[LANE]));
}

extern "C" __global__ void syncwarp_without_exited_lanes(unsigned *out) {
    if (LANE < 16)
        return;
    asm volatile("bar.warp.sync -1;" ::: "memory");
    out[LANE] = LANE;
}

extern "C" __global__ void shuffle_from_exited_lane(unsigned *out) {
    if (LANE < 16)
        return;
    unsigned value = LANE;
    asm volatile("shfl.sync.idx.b32 %0, %0, %1, 31, 0xffff0000;" : "+r"(value) : "r"(LANE < 24 ? LANE + 8 : LANE - 16));
    out[LANE] = value;
}

extern "C" __global__ void shuffle_from_lane_outside_mask(unsigned *out) {
    unsigned value = 50 + LANE;
    if (LANE < 16)
        asm volatile("shfl.sync.idx.b32 %0, %0, %1, 31, 0xffff;" : "+r"(value) : "r"(LANE == 0 ? 20 : LANE - 1));
    out[LANE] = value;
}

extern "C" __global__ void vote_lane_outside_its_mask(unsigned *out) {
    asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; vote.sync.ballot.b32 %0, p, %1; }"
                 : "=r"(out[LANE]) : "r"(LANE == 3 ? 0xf0u : FULL));
}

extern "C" __global__ void vote_mask_of_waiting_lanes(unsigned *out) {
    unsigned votes = 0;
    if (LANE < 16)
        asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; vote.sync.ballot.b32 %0, p, -1; }" : "=r"(votes));
    out[LANE] = votes;
}

extern "C" __global__ void masks_disagree(unsigned *out) {
    out[LANE] = __ballot_sync(LANE == 0 ? 3u : FULL, 1);
}

extern "C" __global__ void elect_partial(unsigned *out) {
    unsigned chosen = 99, leader = 0;
    if (LANE >= 7)
        asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffff80; selp.u32 %1, 1, 0, p; }"
                     : "=r"(chosen), "=r"(leader));
    out[LANE] = chosen * 2 + leader;
}

extern "C" __global__ void match_all_disagree(unsigned *out) {
    int same = 7;
    const unsigned mask = __match_all_sync(FULL, LANE == 30, &same);
    out[LANE] = mask + same;
}

extern "C" __global__ void match_any_64(unsigned *out) {
    out[LANE] = __match_any_sync(FULL, static_cast<unsigned long long>(LANE % 2) << 40 | 5);
}

extern "C" __global__ void vote_uni(unsigned *out) {
    unsigned alike, different;
    asm volatile("{ .reg .pred p, q; setp.lt.u32 p, %2, 99; vote.sync.uni.pred q, p, -1; selp.u32 %0, 2, 0, q;"
                 "setp.lt.u32 p, %2, 9; vote.sync.uni.pred q, p, -1; selp.u32 %1, 1, 0, q; }"
                 : "=&r"(alike), "=&r"(different) : "r"(LANE));
    out[LANE] = alike + different;
}

extern "C" __global__ void early_exit_before_syncthreads(unsigned *out) {
    if (threadIdx.x < 32)
        return;
    __syncthreads();
    out[threadIdx.x] = threadIdx.x;
}

extern "C" __global__ void divergent_loop_reconverges(unsigned *out) {
    unsigned sum = 0;
    for (unsigned i = 0; i < LANE; ++i)
        sum += i ^ LANE;
    asm volatile("" : "+r"(sum));
    out[LANE] = __ballot_sync(FULL, sum < 100000);
}

extern "C" __global__ void switch_of_four(unsigned *out) {
    const unsigned mask = 0x11111111u << LANE % 4;
    unsigned value = LANE * LANE;
    switch (LANE % 4) {
    case 0: value = __shfl_sync(mask, value, (LANE + 4) % 32); break;
    case 1: value = __shfl_sync(mask, value, (LANE + 8) % 32) + 1000; break;
    case 2: value = __shfl_sync(mask, value, (LANE + 12) % 32) + 2000; break;
    default: value = __shfl_sync(mask, value, (LANE + 28) % 32) + 3000;
    }
    out[LANE] = value;
}
