# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`python -m gpuprof` is the `gpuprof` command."""

from gpuprof.cli import main

if __name__ == "__main__":
    main()
