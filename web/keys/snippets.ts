/** Values of a code example. None of them contains quotes, backslashes or spaces. */
export interface Use {
  /** Origin of this page, such as `http://127.0.0.1:8080`. */
  readonly origin: string;
  readonly secret: string;
  readonly model: string;
}

/** A code example that runs as pasted. */
export interface Snippet {
  readonly name: string;
  /** Prerequisites, or where to run it. */
  readonly needs: string;
  readonly write: (use: Use) => string;
}

/** One example per common client. */
export const SNIPPETS: readonly Snippet[] = [
  {
    name: "curl",
    needs: "Shell",
    write: ({ origin, secret, model }) => `curl ${origin}/v1/chat/completions \\
  -H 'authorization: Bearer ${secret}' \\
  -H 'content-type: application/json' \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello!"}]}'`,
  },
  {
    name: "Environment",
    needs: "For tools that read OpenAI’s environment variables",
    write: ({ origin, secret }) => `export OPENAI_BASE_URL='${origin}/v1'
export OPENAI_API_KEY='${secret}'`,
  },
  {
    name: "Python",
    needs: "pip install openai",
    write: ({ origin, secret, model }) => `from openai import OpenAI

client = OpenAI(
    base_url="${origin}/v1",
    api_key="${secret}",
)

completion = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello!"}],
)
print(completion.choices[0].message.content)`,
  },
  {
    name: "Node",
    needs: "npm install openai; save as hello.mjs",
    write: ({ origin, secret, model }) => `import OpenAI from "openai";

const client = new OpenAI({
  baseURL: "${origin}/v1",
  apiKey: "${secret}",
});

const completion = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Hello!" }],
});
console.log(completion.choices[0].message.content);`,
  },
  {
    name: "AI SDK",
    needs: "npm install ai @ai-sdk/openai-compatible; save as hello.mjs",
    write: ({ origin, secret, model }) => `import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";

const parley = createOpenAICompatible({
  name: "parley",
  baseURL: "${origin}/v1",
  apiKey: "${secret}",
});

const { text } = await generateText({
  model: parley("${model}"),
  prompt: "Hello!",
});
console.log(text);`,
  },
  {
    name: "LangChain",
    needs: "npm install @langchain/openai @langchain/core; save as hello.mjs",
    write: ({ origin, secret, model }) => `import { ChatOpenAI } from "@langchain/openai";

const chat = new ChatOpenAI({
  model: "${model}",
  apiKey: "${secret}",
  configuration: { baseURL: "${origin}/v1" },
});

const answer = await chat.invoke("Hello!");
console.log(answer.text);`,
  },
  {
    name: "Go",
    needs: "go get github.com/openai/openai-go/v3",
    write: ({ origin, secret, model }) => `package main

import (
	"context"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	client := openai.NewClient(
		option.WithBaseURL("${origin}/v1"),
		option.WithAPIKey("${secret}"),
	)
	completion, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{
		Model:    "${model}",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello!")},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(completion.Choices[0].Message.Content)
}`,
  },
  {
    name: "buf curl",
    needs: "In a checkout of Parley, which has the .proto files",
    write: ({ origin, secret, model }) => `buf curl --protocol connect --schema proto \\
  --header 'authorization: Bearer ${secret}' \\
  --data '{"model": "${model}", "messages": [{"role": "ROLE_USER", "parts": [{"text": "Hello!"}]}]}' \\
  ${origin}/parley.v1.CompletionService/Create`,
  },
];
