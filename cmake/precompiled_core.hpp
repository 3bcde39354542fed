// cmake/precompiled_core.hpp - what most sources from the scheduler up include, besides
// cmake/precompiled.hpp. A source below control that leans on what it has no include for is found
// by g++ in scripts/check, which reads no precompiled header. Nothing includes this file.
#pragma once

#include "control/core/core.hpp"
