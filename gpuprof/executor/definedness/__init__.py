# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Steps that also follow undefined values: from the read that made them to where they would count."""
