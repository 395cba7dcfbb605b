// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "printf and assert"
verdict = "ok"

[printf_counts_arguments]
rule = "printf returns how many arguments its format takes."
expected = [3]
[printf_without_arguments]
rule = "Without arguments printf returns 0."
expected = [0]
[printf_of_percent]
rule = "%% takes no argument."
[printf_of_a_width]
rule = "A width given as * takes an argument too."
[printf_in_one_branch]
rule = "Lanes that do not print go on as if nothing were."
expected = [0, 1]
[printf_of_wide_values]
rule = "Values of 4 and 8 bytes mix."
expected = [5]
[assert_holds]
rule = "An assertion that holds is nothing."
expected = [4]
[assert_fails]
rule = "An assertion that fails ends the launch."
verdict = "fault"
faults = ["trap"]
[assert_fails_for_one_lane]
rule = "It is enough that it fails for one lane, in one branch."
verdict = "fault"
faults = ["trap"]
[trap_of_one_lane]
rule = "A trap of one lane ends the launch."
verdict = "fault"
faults = ["trap"]
[exit_of_some_lanes]
rule = "Lanes that have ended are not waited for at a barrier."
block = 64
count = 64
defined = [[0, 3]]
*/

#define SELF threadIdx.x

extern "C" __global__ void printf_counts_arguments(unsigned *out) {
    out[SELF] = printf("%u is %f, %s\n", SELF, SELF * 0.5, "so");
}
extern "C" __global__ void printf_without_arguments(unsigned *out) { out[SELF] = printf("nothing\n"); }
extern "C" __global__ void printf_of_percent(unsigned *out) { out[SELF] = printf("%u%%\n", SELF); }
extern "C" __global__ void printf_of_a_width(unsigned *out) { out[SELF] = printf("[%*d]\n", 5, (int)SELF); }
extern "C" __global__ void printf_in_one_branch(unsigned *out) {
    unsigned result = 0;
    if (SELF & 1) result = printf("%u\n", SELF);
    out[SELF] = result;
}
extern "C" __global__ void printf_of_wide_values(unsigned *out) {
    out[SELF] = printf("%d %lld %c %g %hd\n", 1, 1ll << 40, 'x', 2.5, (short)SELF);
}

extern "C" __global__ void assert_holds(unsigned *out) {
    assert(SELF < 32);
    out[SELF] = 4;
}
extern "C" __global__ void assert_fails(unsigned *out) {
    out[SELF] = 1;
    assert(out[SELF] == 2);
}
extern "C" __global__ void assert_fails_for_one_lane(unsigned *out) {
    out[SELF] = SELF;
    if (SELF > 16) assert(out[SELF] != 20);
}
extern "C" __global__ void trap_of_one_lane(unsigned *out) {
    out[SELF] = SELF;
    if (out[SELF] == 9) __trap();
}
extern "C" __global__ void exit_of_some_lanes(unsigned *out) {
    __shared__ unsigned held[64];
    held[SELF] = SELF * 2;
    if (SELF >= 3 && SELF != 40) asm volatile("exit;");
    __syncthreads();
    out[SELF] = held[SELF & 1];
}
