// A streaming tool loop of Vercel's AI SDK: `KEY=… node ai_sdk_loop.mjs API BASE MODEL PROMPT`.

import { execFileSync } from "node:child_process";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { isStepCount, streamText, tool } from "ai";
import { z } from "zod";

const [api, base, model, prompt] = process.argv.slice(2);
const apiKey = process.env.KEY;

const apis = {
  "openai-chat": () =>
    createOpenAICompatible({ name: "interlingua", baseURL: `${base}/v1`, apiKey, includeUsage: true })(model),
  "anthropic-messages": () => createAnthropic({ baseURL: `${base}/v1`, apiKey })(model),
  "openai-responses": () => createOpenAI({ baseURL: `${base}/v1`, apiKey }).responses(model),
};

const bash = tool({
  description: "Run a shell command.",
  inputSchema: z.object({ command: z.string() }),
  execute: async ({ command }) => execFileSync("bash", ["-c", command], { encoding: "utf8", timeout: 60_000 }),
});

const result = streamText({
  model: apis[api](),
  tools: { bash },
  stopWhen: isStepCount(8),
  prompt,
});
for await (const part of result.fullStream) {
  if (part.type === "error") throw part.error;
  if (part.type === "text-delta") process.stdout.write(part.text);
}
