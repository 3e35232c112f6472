// Becoming the program of an imprint, instead of executing a file. Both steps are taken by the new
// process itself; neither allocates, because the first has moved the break.
#pragma once

namespace atl::agent {

// Tells the kernel where the program's heap, stack and arguments will be; the filter forbids it, so
// this comes before. 0, or -1 with errno.
int set_memory_marks(int imprint);

// Replaces all memory of this process by that of the imprint and goes on as the program, keeping
// the descriptors 0 to 2 and `control`. Returns -1 with errno while there is something to return
// to; after that a failure is written to `report` as the step kImprint.
int become_imprint(int imprint, int report, int control);

}  // namespace atl::agent
