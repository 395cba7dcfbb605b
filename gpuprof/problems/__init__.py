# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is computed: operations as they are declared, and problems with sizes. No CUDA here."""
