// SPDX-License-Identifier: Apache-2.0
// Warnings about what is well formed and hardly meant. Only where a person would agree nearly every time; it changes
// nothing and proves nothing.
#pragma once
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/names/names.h"
#include "compiler/parse/ast.h"

namespace elsewise {

void warn_suspicious(const Source &, const Ast &, const Names &, Sink &);

} // namespace elsewise
