// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// What kernels of two blocks of a cluster can do wrong: «what the wrong one says¦what its twin says», or
// what nothing mends. The fault is at the `// planted` line; `// other` is the line that a barrier must
// order it with.

//:: FRAME
extern "C" __global__ void __cluster_dims__(2, 1, 1) k(float *out) {
    __shared__ __align__(128) float row[64];
    __shared__ u64 full, done;
    const int t = threadIdx.x, other = rank() ^ 1;
BODY
}

//:: barrier before a remote read
//: kind = "SHARED_RACE"
//: words = 'reads byte \d+ of the shared memory of rank [01], which .* writes in line'
    row[t] = t; // other
    «¦meet(); // the fence»
    out[blockIdx.x * 64 + t] = pointer(row, other)[t ^ 1]; // planted
    meet();

//:: barrier before the owner writes again
//: kind = "SHARED_RACE"
//: words = 'writes byte \d+ of the shared memory of rank [01], which .* reads in line'
    row[t] = t;
    meet();
    out[blockIdx.x * 64 + t] = pointer(row, other)[t]; // other
    «¦meet(); // the fence»
    row[t] = 7; // planted

//:: barrier after a remote store
//: kind = "SHARED_RACE"
//: words = 'reads byte \d+ of the shared memory of rank [01], which .* writes in line'
    row[t] = 0;
    meet();
    pointer(row, other)[t] = 3; // other
    «¦meet(); // the fence»
    out[blockIdx.x * 64 + t] = row[t]; // planted
    meet();

//:: barrier of the cluster, not of the block
//: kind = "SHARED_RACE"
//: words = 'reads byte \d+ of the shared memory of rank [01], which .* writes in line'
    row[t] = t; // other
    «¦meet();»__syncthreads();
    out[blockIdx.x * 64 + t] = pointer(row, other)[63 - t]; // planted
    meet();

//:: barrier before the end
//: kind = "OUT_OF_BOUNDS"
//: words = 'accesses shared memory of block \([01], 0, 0\), which ends without waiting for that'
    row[t] = t;
    meet();
    out[blockIdx.x * 64 + t] = pointer(row, other)[t]; // planted
    «¦meet(); // the fence»

//:: wait for what others send
//: kind = "OUT_OF_BOUNDS"
//: words = 'accesses shared memory of block \([01], 0, 0\), which ends without waiting for that'
    if (t == 0)
        init(&full, 1);
    meet();
    if (t == 0)
        expect(&full, 256);
    send(row + t, 2, &full, other);
    «¦wait(&full, 0); // the fence»

//:: wait for a multicast
//: kind = "OUT_OF_BOUNDS"
//: words = 'accesses shared memory of block \(1, 0, 0\), which ends without waiting for that'
    if (t == 0)
        init(&full, 1);
    meet();
    if (t == 0)
        expect(&full, 256);
    if (t == 0 && rank() == 0)
        multicast(row, out, 256, &full, 3);
    if (rank() == 0)
        wait(&full, 0);
    «¦if (rank() == 1)
        wait(&full, 0); // the fence»

//:: wait of all who read a multicast
//: kind = "ASYNC_COPY"
//: words = 'reads byte \d+ .* where a bulk copy arrived that it did not wait for, started by line COPY'
    if (t == 0)
        init(&full, 1);
    meet();
    if (t == 0)
        expect(&full, 256);
    if (t == 0 && rank() == 0)
        multicast(row, out, 256, &full, 3);
    if (t < 32)
        wait(&full, 0);
    «¦__syncthreads(); // the fence»
    if (row[t] > 0) // planted
        out[t] = 1;
    meet();

//:: word that a copy was taken
//: kind = "OUT_OF_BOUNDS"
//: words = 'accesses shared memory of block \(0, 0, 0\), which ends without waiting for that'
    if (t == 0) {
        init(&full, 1);
        init(&done, 1);
    }
    if (rank() == 0)
        row[t] = t;
    asm volatile("fence.proxy.async;" ::: "memory");
    meet();
    if (rank() == 1) {
        if (t == 0)
            expect(&full, 256);
        wait(&full, 0);
        out[t] = row[t];
        __syncwarp();
        if (t == 0)
            arrive_remote(&done, 0);
    } else {
        if (t == 0)
            pass(row, row, 256, &full, 1);
        «¦wait(&done, 0); // the fence»
    }

//:: fence before a relaxed arrival
//: kind = "SHARED_RACE"
//: words = 'reads byte \d+ of the shared memory of rank [01], which'
    row[t] = t; // other
    «¦__threadfence(); // the fence»
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    out[blockIdx.x * 64 + t] = pointer(row, other)[t]; // planted
    meet();

//:: barrier that has stores come before the end
//: kind = "OUT_OF_BOUNDS"
//: words = 'accesses shared memory of block \([01], 0, 0\), which ends without waiting for that'
    meet();
    pointer(row, other)[t] = t; // planted
    «asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");¦meet(); // the fence»

//:: barrier that has arrivals come before the end
//: kind = "OUT_OF_BOUNDS"
//: words = 'accesses shared memory of block \([01], 0, 0\), which ends without waiting for that'
    if (t == 0)
        init(&done, 64);
    meet();
    arrive_remote(&done, other);
    «asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");¦meet(); // the fence»

//:: wait for arrivals before the end
//: kind = "OUT_OF_BOUNDS"
//: words = 'accesses shared memory of block \([01], 0, 0\), which ends without waiting for that'
    if (t == 0)
        init(&done, 64);
    meet();
    arrive_remote(&done, other);
    «¦if (t == 32)
        wait(&done, 0); // the fence»

//:: wait for what was sent
//: kind = "ASYNC_COPY"
//: words = 'reads byte \d+ .* to which the copy that line \d+ started is still in flight'
    if (t == 0) {
        init(&full, 1);
        fence();
        expect(&full, 256);
    }
    meet();
    send(row + t, t, &full, other);
    «¦wait(&full, 0); // the fence»
    out[blockIdx.x * 64 + t] = row[t]; // planted
    meet();

//:: wait before more is sent to one place
//: kind = "ASYNC_COPY"
//: words = 'starts an asynchronous store to byte \d+ .* to which the copy that line \d+ started is still'
    if (t == 0) {
        init(&full, 1);
        init(&done, 1);
        fence();
        expect(&full, 256);
        expect(&done, 256);
    }
    meet();
    send(row + t, t, &full, other);
    «¦wait(&full, 0); meet(); // the fence»
    send(row + t, 2 * t, &done, other);
    wait(&done, 0);
    out[blockIdx.x * 64 + t] = row[t];
    meet();

//:: barrier before others use an mbarrier
//: kind = "SHARED_RACE"
//: words = 'uses the mbarrier at byte \d+ of the shared memory of rank [01], which'
//: met = "mbarrier.init"
    if (t == 0) {
        init(&full, 64);
        fence();
    }
    «¦meet(); // the fence»
    arrive_remote(&full, other);
    wait(&full, 0);
    meet();

//:: wait until the receiver is ready
//: kind = "SHARED_RACE"
//: words = 'starts an asynchronous store to byte \d+ of the shared memory of rank [01], which .* read'
    row[t] = 1;
    if (t == 0) {
        init(&full, 1);
        init(&done, 64);
        fence();
        expect(&full, 256);
    }
    meet();
    out[blockIdx.x * 64 + t] = row[t]; // other
    arrive_remote(&done, other);
    «¦wait(&done, 0); // the fence»
    send(row + t, t, &full, other);
    wait(&full, 0);
    out[blockIdx.x * 64 + t] += row[t];
    meet();

//:: rank outside the cluster
//: kind = "OUT_OF_BOUNDS"
//: words = "which is an address of rank 2; the cluster has 2 blocks"
//: line = "ld.shared::cluster"
    row[t] = 0; meet();
    out[t] = remote(mapped(row, t == 40 ? 2 : 0));

//:: beyond another block's memory
//: kind = "OUT_OF_BOUNDS"
//: words = "accesses 4 bytes at byte 20000 of the shared memory of rank 1, which has"
//: line = "ld.shared::cluster"
    row[t] = 0; meet();
    out[t] = remote(mapped(row + 5000, other));

//:: own instruction, other address
//: kind = "OUT_OF_BOUNDS"
//: words = "accesses shared memory of its own block at 0x1000"
    row[t] = 0; meet();
    asm volatile("ld.shared::cta.f32 %0, [%1];" : "=f"(out[t]) : "r"(mapped(row + t, other))); // planted

//:: misaligned
//: kind = "MISALIGNED"
//: words = "accesses 4 bytes at byte 2 of the shared memory of rank 1, which is not aligned to 4 there"
//: line = "ld.shared::cluster"
    row[t] = 0; meet();
    out[t] = remote(mapped(row, other) + 2);

//:: misaligned as a whole, where one word of four is loaded
//: kind = "MISALIGNED"
//: words = "which is not a multiple of 16"
//: line = "ld.shared.v4"
    row[t] = 0; meet();
    float unused;
    asm volatile("ld.shared.v4.f32 {%0, %1, %1, %1}, [%2];" // planted
        : "=f"(out[t]), "=f"(unused) : "r"(unsigned(__cvta_generic_to_shared(row + t))));

//:: memory that nobody wrote
//: kind = "UNINITIALISED_SHARED"
//: words = "reads byte 0 of the shared memory of rank 1, which was never written"
//: line = "ld.shared::cluster"
    meet();
    out[t] = remote(mapped(row + t, other));

//:: wait without arrival
//: kind = "BARRIER"
//: words = "waits at the barrier of its cluster, but has not arrived there"
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); // planted

//:: two arrivals
//: kind = "BARRIER"
//: words = "arrives at the barrier of its cluster again, before it has waited there"
    asm volatile("barrier.cluster.arrive;" ::: "memory");
    asm volatile("barrier.cluster.arrive;" ::: "memory"); // planted

//:: arrival in divergent code
//: kind = "BARRIER"
//: words = "is in divergent code"
    if (t % 2)
        asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); // planted
    row[t] = 1;
    __syncthreads();
    out[t] = row[t ^ 1];

//:: an mbarrier in another block than the data
//: kind = "MBARRIER"
//: words = "stores to another block than that of its mbarrier"
    if (t == 0) {
        init(&full, 1);
        fence();
    }
    meet();
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" // planted
                 ::"r"(mapped(row, other)), "f"(1.0f), "r"(at(&full)) : "memory");

//:: multicast to a block that is not there
//: kind = "OUT_OF_BOUNDS"
//: words = "copies to the blocks of mask 0x7, but its cluster has 2"
//: line = "multicast::cluster"
    if (t == 0) {
        init(&full, 1);
        fence();
        multicast(row, out, 256, &full, 7);
    }

//:: what a block that has ended held
//: kind = "OUT_OF_BOUNDS"
//: block = [1, 0, 0]
//: words = 'of block \(0, 0, 0\), which ends'
    row[t] = t;
    meet();
    if (rank() == 0)
        return;
    __syncthreads();
    out[t] = pointer(row, 0)[t]; // planted

//:: an undefined value of another block
//: kind = "UNINITIALISED_SHARED"
//: block = [1, 0, 0]
//: thread = [0, 0, 0]
//: words = ""
//: remark = "which was never written"
    if (t > 0)
        row[t] = t;
    meet();
    const float value = pointer(row, other)[t];
    out[blockIdx.x * 64 + t] = t > 0 «|| rank() == 1¦» ? value : 0; // planted
    meet();

//:: a block that is stuck, and who waits for it
//: kind = "BARRIER"
//: block = [1, 0, 0]
//: thread = [32, 0, 0]
//: words = 'waits at; thread \(0, 0, 0\) of block \(0, 0, 0\) waits at the barrier of their cluster'
    row[t] = t;
    if (rank() == 1 && t < 32)
        __syncthreads(); // planted
    meet();
    out[blockIdx.x * 64 + t] = row[t];
