// How many threads the process can run at the same time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gguf {

/**
 * As many as the machine. On Linux no more than the processors that the process may run on (taskset, cpusets
 * of containers) and than it has time of (cpu.max of control groups v2, which is what a limit of a container
 * sets). At least 1. Determined once.
 */
int processors();

/**
 * How many processors' time the control group of a process has, rounded down, and at least 1: the least of
 * what its group and those around it have. nullopt where none has a limit.
 *
 * @param membership the text of /proc/self/cgroup
 * @param root where the file system of groups is
 */
std::optional<int> processors_of_control_group(const std::string& membership, const std::string& root);

}  // namespace gguf
