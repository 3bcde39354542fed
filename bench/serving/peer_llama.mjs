// llama.cpp beside the engine, for bench_weights: one thread, greedy.
//
//   node peer_llama.mjs MODEL.gguf PROMPT STEPS SEQUENCES...
//
// Prints {"prefill_ms": of a prompt of PROMPT tokens, "step_ms": {SEQUENCES: of a step that decodes
// as many texts, the median of STEPS}}. Needs node-llama-cpp in the directory where it runs.
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';

const [file, prompt, steps, ...counts] = process.argv.slice(2);
const require = createRequire(process.cwd() + '/');
const {getLlama, LlamaLogLevel} =
    await import(pathToFileURL(require.resolve('node-llama-cpp')).href);

const llama = await getLlama(
    {gpu: false, build: 'never', maxThreads: 1, logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath: file});

const tokensOf = (length, seed) =>
    Array.from({length}, (_, at) => 2 + (at * 7919 + seed * 104729) % 40000);
const median = values => values.toSorted((a, b) => a - b)[values.length >> 1];

async function prefill() {
  const context = await model.createContext(
      {contextSize: 2 * +prompt, batchSize: +prompt, sequences: 1, threads: 1});
  const sequence = context.getSequence();
  const begin = performance.now();
  await sequence.evaluateWithoutGeneratingNewTokens(tokensOf(+prompt, 1));
  const spent = performance.now() - begin;
  await context.dispose();
  return spent;
}

// All texts wait for each other, so a step decodes one token of each.
async function step(count) {
  const begin = 32;
  const context = await model.createContext({
    contextSize: begin + 2 * +steps,
    batchSize: Math.max(count * begin, 512),
    sequences: count,
    threads: 1
  });
  const texts = [];
  for (let each = 0; each < count; ++each) {
    const sequence = context.getSequence();
    texts.push(sequence.evaluate(tokensOf(begin, each), {temperature: 0}));
  }
  await Promise.all(texts.map(text => text.next()));
  const times = [];
  for (let each = 0; each < +steps; ++each) {
    const at = performance.now();
    await Promise.all(texts.map(text => text.next()));
    times.push(performance.now() - at);
  }
  await context.dispose();
  return median(times);
}

// The first one also brings the weights into memory.
await prefill();
const result = {prefill_ms: await prefill(), step_ms: {}};
for (const count of counts) result.step_ms[count] = await step(+count);
console.log(JSON.stringify(result));
process.exit(0);
