#include "bindings.hpp"
#include "eagle/team.hpp"

NB_MODULE(_native, module) {
    // Executors kept alive by a module's globals are not worth a report when the interpreter ends.
    nanobind::set_leak_warnings(false);
    module.doc() = "The native core of eagle: the executor, the canonical sum, the transposition of a graph.";
#ifdef _OPENMP
    module.attr("OPENMP") = true;
#else
    module.attr("OPENMP") = false;  // built without: one thread
#endif
    module.def(
        "threads", &eagle::team::size,
        "The threads that a run started now may use: OpenMP's setting (OMP_NUM_THREADS); 1 in a forked\n"
        "child whose parent had used more, and in a build without OpenMP.");
    bindSum(module);
    bindExecutor(module);
    bindDiff(module);
}
