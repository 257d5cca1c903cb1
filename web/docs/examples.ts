/** A request as a program that works when it is pasted, with a key in the environment. */
export interface Example {
  readonly name: string;
  /** What has to be there first. */
  readonly needs: string;
  readonly text: string;
}

/** Where a key is expected: never in an example itself. */
export const KEY_VARIABLE = "PARLEY_API_KEY";
const MODEL = "alpha-haiku-4.5";
const IMAGE_MODEL = "beta-3-pro-image-preview";
const IN_SHELL = "In a shell";
const HELLO = [{ role: "user", content: "Hello!" }];
const HELLO_PROTO = [{ role: "ROLE_USER", content: [{ text: "Hello!" }] }];

/** Examples of everything that is shown with some, for the address that this page comes from. */
export function examplesFor({ origin, hostname }: { readonly origin: string; readonly hostname: string }) {
  const curl = (body: object, options = ""): Example => ({
    name: "curl",
    needs: IN_SHELL,
    text: `curl ${options}${origin}/v1/chat/completions \\
  -H "authorization: Bearer $${KEY_VARIABLE}" \\
  -H 'content-type: application/json' \\
  -d '${toLines(body)}'`,
  });
  const get = (path: string): Example => ({
    name: "curl",
    needs: IN_SHELL,
    text: `curl ${origin}${path} \\
  -H "authorization: Bearer $${KEY_VARIABLE}"`,
  });
  const bufCurl = (method: string, message: object): readonly Example[] => {
    const write = (options: string, address: string): string => `curl -sO ${origin}/proto/parley.binpb
buf curl ${options} --schema parley.binpb \\
  --header "authorization: Bearer $${KEY_VARIABLE}" \\
  --data '${toLines(message)}' \\
  ${address}/parley.v1.${method}`;
    return [
      { name: "buf curl", needs: "The Connect protocol, in a shell", text: write("--protocol connect", origin) },
      {
        name: "gRPC",
        needs: "Where gRPC is listened on, 50051 if nothing else was said",
        text: write("--protocol grpc --http2-prior-knowledge", `http://${hostname}:50051`),
      },
    ];
  };
  return {
    chat: [
      curl({ model: MODEL, messages: HELLO }),
      {
        name: "Python",
        needs: "pip install openai",
        text: `${pythonClient(origin)}
completion = client.chat.completions.create(
    model="${MODEL}",
    messages=[{"role": "user", "content": "Hello!"}],
)
print(completion.choices[0].message.content)`,
      },
      {
        name: "Node",
        needs: "npm install openai; save as hello.mjs",
        text: `${nodeClient(origin)}
const completion = await client.chat.completions.create({
  model: "${MODEL}",
  messages: [{ role: "user", content: "Hello!" }],
});
console.log(completion.choices[0].message.content);`,
      },
      { name: "Go", needs: "go get github.com/openai/openai-go/v3", text: goProgram(origin) },
      ...bufCurl("CompletionService/Create", { model: MODEL, messages: HELLO_PROTO }),
    ],
    stream: [
      curl({ model: MODEL, messages: HELLO, stream: true, stream_options: { include_usage: true } }, "-N "),
      {
        name: "Python",
        needs: "pip install openai",
        text: `${pythonClient(origin)}
stream = client.chat.completions.create(
    model="${MODEL}",
    messages=[{"role": "user", "content": "Hello!"}],
    stream=True,
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)`,
      },
      {
        name: "Node",
        needs: "npm install openai; save as hello.mjs",
        text: `${nodeClient(origin)}
const stream = await client.chat.completions.create({
  model: "${MODEL}",
  messages: [{ role: "user", content: "Hello!" }],
  stream: true,
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
}`,
      },
      ...bufCurl("CompletionService/Stream", { model: MODEL, messages: HELLO_PROTO }),
    ],
    fallbacks: [
      curl({ model: MODEL, messages: HELLO, fallback_models: ["beta-3-flash"] }),
      ...bufCurl("CompletionService/Create", {
        model: MODEL,
        messages: HELLO_PROTO,
        fallbackModels: ["beta-3-flash"],
      }),
    ],
    images: [
      curl({
        model: IMAGE_MODEL,
        messages: [{ role: "user", content: "A lighthouse at dusk" }],
        modalities: ["image", "text"],
      }),
      ...bufCurl("CompletionService/Create", {
        model: IMAGE_MODEL,
        messages: [{ role: "ROLE_USER", content: [{ text: "A lighthouse at dusk" }] }],
        modalities: ["MODALITY_IMAGE", "MODALITY_TEXT"],
      }),
    ],
    models: [get("/v1/models"), ...bufCurl("ModelService/List", {})],
    keys: bufCurl("KeyService/GetCurrent", {}),
  } as const satisfies Record<string, readonly Example[]>;
}

/** A message as JSON, with a line for each of its fields. */
function toLines(message: object): string {
  const fields = Object.entries(message).map(([name, value]) => `    "${name}": ${toLine(value)}`);
  return fields.length === 0 ? "{}" : `{\n${fields.join(",\n")}\n  }`;
}

/** A value as JSON with a space after each colon and comma. */
function toLine(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(toLine).join(", ")}]`;
  return `{${Object.entries(value)
    .map(([name, inner]) => `"${name}": ${toLine(inner)}`)
    .join(", ")}}`;
}

function pythonClient(origin: string): string {
  return `import os
from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key=os.environ["${KEY_VARIABLE}"])
`;
}

function nodeClient(origin: string): string {
  return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${origin}/v1", apiKey: process.env.${KEY_VARIABLE} });
`;
}

function goProgram(origin: string): string {
  return `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	client := openai.NewClient(
		option.WithBaseURL("${origin}/v1"),
		option.WithAPIKey(os.Getenv("${KEY_VARIABLE}")),
	)
	completion, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{
		Model:    "${MODEL}",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello!")},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(completion.Choices[0].Message.Content)
}`;
}
