// The parts of the Python module eagle._native.

#pragma once

#include <nanobind/nanobind.h>

void bindDiff(nanobind::module_& module);
void bindExecutor(nanobind::module_& module);
void bindSum(nanobind::module_& module);
