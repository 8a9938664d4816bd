// How many threads of Node's pool work on decoding, over all environments of the process.
#pragma once

namespace gguf::thread_slots {

/**
 * Most tasks in flight: one per hardware thread, but one thread of Node's pool (UV_THREADPOOL_SIZE, 4 if
 * unset) always stays free for the file system and DNS work of the application, as long as the pool has more
 * than one.
 */
int limit();

/** Whether the pool has only one thread, so that all other work waits while a task runs. */
bool is_pool_of_one();

/**
 * Takes a slot for an environment that holds `held` already. The first is always granted, so that no
 * environment waits for another; the rest are shared evenly among the environments that have jobs. So the
 * limit is exceeded only where there are more environments with jobs than slots.
 */
bool take(int held);
void give_back();

/** Counts the jobs under way; an environment announces its first and its last. */
void job_started(bool first_of_environment);
void job_ended(bool last_of_environment);

/** Whether more than one job is under way. Any thread. */
bool is_contended();

}  // namespace gguf::thread_slots
