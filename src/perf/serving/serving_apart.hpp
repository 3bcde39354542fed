// perf/serving/serving_apart.hpp - a service whose prompts and answers are computed by different
// instances: what an instance of each kind reaches, and how long the cache travels between them.
//
// A prompt instance reads one prompt after another in full pieces; an answer instance gives every
// running sequence a token a pass and reads no prompt. Passes, memory and the queue of prompts are
// those of joint instances (perf/serving/serving.hpp). Pure. Cost: two evaluations of a pass.
#pragma once

#include "perf/serving/serving.hpp"

namespace orrery {

struct PromptInstance {
  double requests_max = 0;  ///< a second, reading all the time
  Seconds prompt;           ///< of reading one that comes alone
  StepTime breakdown;       ///< of a prompt in full pieces
  ServingMemory memory;     ///< with caches of prompts alone
};

[[nodiscard]] PromptInstance prompt_instance(const ServingJob& job,
                                             const ServingConstants& constants);

struct AnswerInstance {
  double batch = 0;
  double requests = 0;  ///< a second
  Seconds tpot;
  StepTime breakdown;  ///< of a token of one sequence
  ServingMemory memory;
};

/// With `batch` running sequences. Precondition: answers have at least two tokens; the first one
/// comes from the prompt's instance.
[[nodiscard]] AnswerInstance answer_instance(const ServingJob& job,
                                             const ServingConstants& constants, double batch);

/// Seconds in which the devices that hold a prompt's cache send it, each its part, to those that
/// continue it, over the network between scale-up domains.
[[nodiscard]] Seconds cache_transfer(const ServingJob& prompts, const ServingJob& answers,
                                     const ServingNetwork& network);

}  // namespace orrery
