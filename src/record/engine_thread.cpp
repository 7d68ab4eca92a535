#include "record/engine_thread.h"

namespace revisit::record {

EngineThread::EngineThread(std::unique_ptr<Engine> engine)
    : engine_(std::move(engine)), relay_(kMostWaiting, [this](Job& job) { count(job); }) {}

Result<void> EngineThread::add(const BlockBatch& batch) {
    if (failed_) return unexpected(*failure_);
    Job job = relay_.take();
    job.blocks.assign(batch.blocks.begin(), batch.blocks.end());
    job.sites.assign(batch.sites.begin(), batch.sites.end());
    job.threads.assign(batch.threads.begin(), batch.threads.end());
    job.flags.assign(batch.flags.begin(), batch.flags.end());
    job.parts.assign(batch.parts.begin(), batch.parts.end());
    relay_.hand_over(std::move(job));
    return {};
}

void EngineThread::count(Job& job) {
    if (failed_) return;
    Result<void> added = engine_->add({job.blocks, job.sites, job.threads, job.flags, job.parts});
    if (added) return;
    failure_ = added.error();
    failed_ = true;
}

Result<Profile> EngineThread::finish() {
    relay_.finish();
    if (failed_) return unexpected(*failure_);
    return engine_->finish();
}

}  // namespace revisit::record
