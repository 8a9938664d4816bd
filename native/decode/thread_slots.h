// How many threads do asynchronous work, over all environments of the process.
#pragma once

namespace gguf::thread_slots {

/**
 * Most threads at work: one per hardware thread, but fewer than Node's pool has (UV_THREADPOOL_SIZE, 4 if
 * unset), as long as that has more than one. Each may be a thread of the pool, of which one always stays free
 * for the file system and DNS work of the application.
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
