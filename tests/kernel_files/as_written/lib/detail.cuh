// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
namespace lib { namespace detail { __device__ void add(float &a, float b) { a += b; } } }
