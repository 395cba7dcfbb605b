# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a device is: read from a driver, or from the bundled table of cards."""
