#include "bindings.hpp"
#include "eagle/team.hpp"

NB_MODULE(_native, module) {
    // Executors kept alive by a module's globals are not worth a report when the interpreter ends.
    nanobind::set_leak_warnings(false);
    module.doc() = "The native core of eagle: the executor, the canonical sum, the transposition of a graph.";
    module.def(
        "threads", &eagle::team::size,
        "The threads that a run started now may use: what `set_threads` said, or else the first number in\n"
        "OMP_NUM_THREADS when this was first asked, or else the number of cores that the process may use.");
    module.def("set_threads", &eagle::team::setSize, nanobind::arg("threads"),
               "Let runs of this process use so many threads from now on; bits do not depend on it.\n\n"
               "Raises ValueError for a number that is not between 1 and 1024.");
    bindSum(module);
    bindExecutor(module);
    bindDiff(module);
}
