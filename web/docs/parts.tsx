import type { ReactNode } from "react";
import { formatCount } from "../format/number.ts";
import { Errors } from "./errors.tsx";
import { ExampleTabs } from "./example-tabs.tsx";
import { type examplesFor, KEY_VARIABLE } from "./examples.ts";
import { Operation } from "./operation.tsx";
import { Prose } from "../components/prose.tsx";
import type { Method, Reference } from "./reference.ts";
import { Shapes } from "./topic-view.tsx";
import { Downloads, Facts, Headers } from "./tables.tsx";

/** What every part of the page is made of. */
export interface Material {
  readonly reference: Reference;
  readonly examples: ReturnType<typeof examplesFor>;
  readonly origin: string;
}

/** One part of the page. */
export interface Part {
  readonly id: string;
  readonly title: string;
  /** Topics of the reference that belong to it, each under a heading of its own. */
  readonly topics?: readonly string[];
  readonly render: (material: Material) => ReactNode;
}

const methodsOf = ({ methods }: Reference, ...names: readonly string[]): Method[] =>
  methods.filter(({ path }) => names.some((name) => path.endsWith(name)));

/** The shapes of a topic that stand in a part without a heading of their own. */
function TopicShapes({ of, id }: { readonly of: Reference; readonly id: string }) {
  const topic = of.topics.find((each) => each.id === id)!;
  return <Shapes {...topic} />;
}

/** The parts of the page, in their order. */
export const PARTS: readonly Part[] = [
  {
    id: "start",
    title: "Start here",
    render: ({ origin }) => (
      <>
        <Prose text="Parley answers chat completions with many models behind one address and one key. Programs that speak the OpenAI format use it over HTTP; others call the same service over gRPC, or over the Connect protocol, which is plain HTTP too." />
        <Facts
          facts={[
            ["OpenAI format", `\`${origin}/v1\` is the base URL for clients, with a key of Parley as their API key.`],
            ["Connect", `\`${origin}/parley.v1.CompletionService/Create\` and its like, as JSON or binary.`],
            ["gRPC", "Has a port of its own, 50051 if nothing else was said, with reflection and health checks."],
          ]}
        />
      </>
    ),
  },
  {
    id: "authentication",
    title: "Authentication",
    render: () => (
      <>
        <Prose text="Every call carries an API key: `authorization: Bearer sk_parley_…`, as a header over HTTP and Connect, as metadata over gRPC. Keys are made, rotated and revoked in the dashboard, where each can be given models, capabilities, an expiry and limits. Only `/healthz`, `/readyz`, `/openapi.json` and `/proto/` need none." />
        <Prose
          text={`Keep keys out of programs and repositories. The examples below read one from the environment variable \`${KEY_VARIABLE}\`.`}
        />
        <Prose text="Without a valid key the answer is a 401 (`unauthenticated`), with one that may not use the model or make images a 403 (`permission_denied`)." />
      </>
    ),
  },
  {
    id: "chat",
    title: "Create a completion",
    topics: ["request", "messages", "tools", "formats", "answer", "routing"],
    render: ({ reference, examples }) => (
      <>
        <Operation
          http="POST /v1/chat/completions"
          httpText={
            <>
              <Prose text="Runs one completion and returns it whole, or with `stream` in pieces. The body is JSON, the header `content-type` says so." />
              <Prose text="A field may be `null`, which is the same as leaving it out." />
            </>
          }
          methods={methodsOf(reference, "/Create")}
        />
        <ExampleTabs about="create a completion" examples={examples.chat} />
        <Prose text="A field that the model’s provider cannot honour does not fail the request: it is left out, or moved into the provider’s range, and named in the answer’s `parley.omitted` or `parley.clamped`. Mistyped names end up there too. With `parley.strict` (gRPC: `strict`) all of these are refused instead." />
        <Prose text="Checks come in this order: the key (401), a body that cannot be read (400), an unknown model (404), what the key may do (403), the rest of the request (400), rates, and last the budget (429)." />
      </>
    ),
  },
  {
    id: "streaming",
    title: "Streaming",
    topics: ["chunks"],
    render: ({ reference, examples }) => (
      <>
        <Operation
          http={'POST /v1/chat/completions with "stream": true'}
          httpText={
            <>
              <Prose text="Answers with server-sent events (`text/event-stream`). Each is a line `data: ` with a chunk as JSON, and an empty line:" />
              <ol className="list-decimal space-y-1 pl-5">
                <li>For each choice a first delta with the role and an empty content.</li>
                <li>Any number of deltas with content, reasoning, tool calls, pictures.</li>
                <li>For each choice a chunk with its finish reason, an empty delta, and the object “parley”.</li>
                <li>With stream_options.include_usage, one chunk without choices that has the usage.</li>
                <li>data: [DONE]</li>
              </ol>
              <Prose text="Lines that begin with a colon are comments, sent after 15 seconds of silence." />
            </>
          }
          methods={methodsOf(reference, "/Stream")}
        />
        <ExampleTabs about="stream a completion" examples={examples.stream} />
        <Prose
          text={
            'Until the first content nothing is sent, so that an early failure has its own status and a fallback stays invisible. After that a failure is the last event, `data: {"error": {…}}`, and the connection closes without `data: [DONE]`; over gRPC the call ends with a status that is not OK. A stream that ends with `[DONE]`, or with OK, is complete.'
          }
        />
      </>
    ),
  },
  {
    id: "fallbacks",
    title: "Fallbacks",
    render: ({ examples }) => (
      <>
        <Prose text="With `fallback_models` other models are tried, in the order that you give, when the first one’s provider cannot be reached, answers with an error, is silent for too long, or cannot be read: as long as nothing of an answer has reached you. What Parley itself refuses (a wrong request, a key, a limit) is never tried elsewhere. One deadline bounds all attempts together." />
        <Prose text="`model` in the answer is the model that answered; the headers `parley-requested-model`, `parley-served-model` and `parley-attempts` say the same. `parley.attempts` lists every attempt with its outcome. When all fail, the error is the first model’s, with the list in `error.attempts` (gRPC: `parley.v1.AttemptList`)." />
        <ExampleTabs about="name a fallback" examples={examples.fallbacks} />
      </>
    ),
  },
  {
    id: "images",
    title: "Images",
    render: ({ examples }) => (
      <>
        <Prose text="To show a model a picture, send an `image_url` part with a data URL or an https address (gRPC: `ContentPart.image`). To have one made, ask a model that makes pictures for the modalities `image` and `text`; `GET /v1/models` tells which can." />
        <Prose text="In a whole answer `content` is then a list of text and `image_url` parts, in the provider’s order, with the pictures as data URLs. In a stream pictures come whole, in `delta.images`. Over gRPC they are parts with their bytes." />
        <ExampleTabs about="make a picture" examples={examples.images} />
      </>
    ),
  },
  {
    id: "models",
    title: "Models",
    render: ({ reference, examples }) => (
      <>
        <Operation
          http="GET /v1/models"
          httpText={<Prose text="Lists the models that the key may use. Each call counts as a request." />}
          methods={methodsOf(reference, "ModelService/List")}
        />
        <Operation
          http="GET /v1/models/{id}"
          httpText={<Prose text="Returns one model, or a 404 when it does not exist or the key may not use it." />}
          methods={methodsOf(reference, "ModelService/Get")}
        />
        <ExampleTabs about="list the models" examples={examples.models} />
        <TopicShapes of={reference} id="model-shapes" />
      </>
    ),
  },
  {
    id: "keys",
    title: "The key of a call",
    render: ({ reference, examples }) => (
      <>
        <Prose text="Over gRPC and Connect a caller can ask which key it calls with, and what that may do." />
        <Operation methods={methodsOf(reference, "KeyService/GetCurrent")} />
        <ExampleTabs about="get the key of the call" examples={examples.keys} />
        <TopicShapes of={reference} id="key-shapes" />
      </>
    ),
  },
  {
    id: "health",
    title: "Health",
    render: () => (
      <Facts
        facts={[
          ["GET /healthz", '200 `{"status":"ok"}` while the process is alive.'],
          [
            "GET /readyz",
            '200 `{"status":"ready"}` while it takes new work, 503 `{"status":"draining"}` once it shuts down.',
          ],
          ["gRPC", "`grpc.health.v1.Health`, for the server and for each service. None of the three needs a key."],
        ]}
      />
    ),
  },
  {
    id: "headers",
    title: "Headers",
    render: ({ reference: { headers } }) => (
      <>
        <Prose text="Over gRPC and Connect the same names are metadata; waiting is `google.rpc.RetryInfo` there, and a deadline the call’s own (Connect: `connect-timeout-ms`)." />
        <h3 className="text-base font-semibold">Of requests</h3>
        <Headers headers={headers.request} />
        <h3 className="text-base font-semibold">Of answers</h3>
        <Headers headers={headers.answer} />
      </>
    ),
  },
  {
    id: "limits",
    title: "Limits",
    render: ({ reference: { limits } }) => (
      <>
        <Prose text="A key and its account can have limits: requests per minute, tokens per minute, requests at the same moment, and a budget per calendar month in UTC. Rates fill up again continuously. What is left stands in the `x-ratelimit-…` headers of every answer." />
        <Facts
          facts={[
            ["Body", `At most ${limits.bodyMebibytes} MiB, not compressed.`],
            [
              "JSON",
              `At most ${limits.jsonDepth} levels deep, with ${formatCount(limits.jsonValues)} keys and values.`,
            ],
            ["Messages", `1 to ${formatCount(limits.messages)}.`],
            ["Fallback models", `At most ${limits.fallbacks}.`],
            ["Stop sequences", `At most ${limits.stops}.`],
            ["Tokens of an answer", "At most the model’s `max_output_tokens`."],
          ]}
        />
      </>
    ),
  },
  {
    id: "errors",
    title: "Errors",
    render: ({ reference: { errors } }) => (
      <>
        <Prose
          text={
            'Over HTTP a failure’s body is `{"error": {"message", "type", "param", "code"}}`; `param` is the field that is wrong, and `attempts` is there when models were tried. Over gRPC it is a status with `google.rpc.ErrorInfo`, whose `reason` is the code below in upper case and whose `domain` is `parley`, and where they apply `google.rpc.BadRequest`, `google.rpc.RetryInfo` and `parley.v1.AttemptList`.'
          }
        />
        <Prose text="Every 429 and 503 says how long to wait, 1 to 60 seconds. `x-should-retry: false` keeps official clients from retrying by themselves: when trying again changes nothing, and when more than one model was tried already. Retry with exponential backoff and some randomness, and give up after a few times." />
        <Errors rows={errors} />
      </>
    ),
  },
  {
    id: "compatibility",
    title: "Versions and compatibility",
    render: () => (
      <>
        <Prose text="The version stands in the path, `/v1`, and in the package, `parley.v1`. Within a version nothing that works is taken away: fields, values of enumerations, events and error codes may be added. Read leniently: ignore fields that you do not know." />
        <Prose text="Any client of the OpenAI format works. What Parley adds is under `parley`, in headers of its own, and in fields that many clients know already (`reasoning_content`, `thinking_blocks`, `extra_content`); everything works when a client drops them. Models whose ID has the word `preview` may change or go away." />
      </>
    ),
  },
  {
    id: "downloads",
    title: "Downloads",
    render: ({ reference: { downloads } }) => (
      <>
        <Prose text="For everybody, without a key, and from pages of other origins too." />
        <Downloads downloads={downloads} />
      </>
    ),
  },
];
