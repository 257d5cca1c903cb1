import { create } from "@bufbuild/protobuf";
import {
  type Completion,
  type CompletionChunk,
  type CompletionRequest,
  CompletionSchema,
  Modality,
  type Usage,
} from "../../gen/parley/v1/completion_pb.js";
import type { Attempt, Report } from "../../gen/parley/v1/report_pb.js";
import type { Clock } from "./clock.ts";
import { costOf } from "./cost.ts";
import { Failure, type FailureCode, type FieldViolation, invalidField } from "./failure.ts";
import { makes, type Model, modelNotFound } from "./model.ts";
import type { Capability, Principal } from "./principal.ts";
import type { Entrance, Recorder } from "./record.ts";
import type { Mode, Plan, Router, RouterCall } from "./router.ts";
import { validate } from "./validate.ts";

/** What an entrance knows of a call. */
export interface Call {
  readonly principal: Principal;
  readonly requestId: string;
  readonly completionId: string;
  readonly entrance: Entrance;
  /** Aborts when the caller leaves, its deadline passes or the gateway stops: with a Failure as its reason. */
  readonly signal: AbortSignal;
  /** When the request arrived, by the clock's `monotonic`. */
  readonly arrivedMs: number;
}

/** The completion service, as both entrances call it. */
export interface Completions {
  /** One whole completion. Throws a Failure. */
  create(request: CompletionRequest, call: Call): Promise<Completion>;
  /**
   * One completion in batches of chunks, by the grammar of `CompletionService.Stream`. Throws a Failure; once a batch
   * was yielded, the failure is the end of the stream. Returning early ends the completion.
   */
  stream(request: CompletionRequest, call: Call): AsyncIterable<readonly CompletionChunk[]>;
}

/** What core stands on. */
export interface CorePorts {
  readonly router: Router;
  /** Throws `permission_denied`, naming what is missing. */
  readonly permit: (principal: Principal, needs: { models: readonly string[]; capability: Capability }) => void;
  readonly recorder: Recorder;
  readonly clock: Clock;
}

/** The pipeline of one completion: find → permit → validate → plan → route → meter → record. */
export function createCompletions(ports: CorePorts): Completions {
  return {
    async create(request, call) {
      const meter = new Meter(ports, { request, call, mode: "whole" });
      try {
        const plan = meter.admitted(admit(ports, request, { call, mode: "whole" }));
        const { model, answer, report } = await ports.router.create(plan, meter.routerCall);
        meter.served(model, answer.usage);
        meter.complete(report);
        const { completionId: id, created } = meter.routerCall;
        return create(CompletionSchema, {
          id,
          created: BigInt(created),
          model: model.id,
          choices: answer.choices,
          report,
          ...(answer.usage !== undefined && { usage: answer.usage }),
        });
      } catch (reason) {
        throw meter.failed(reason);
      } finally {
        meter.record();
      }
    },

    async *stream(request, call) {
      const meter = new Meter(ports, { request, call, mode: "stream" });
      try {
        const plan = meter.admitted(admit(ports, request, { call, mode: "stream" }));
        for await (const batch of ports.router.stream(plan, meter.routerCall)) {
          for (const chunk of batch) meter.observe(chunk);
          yield batch;
        }
      } catch (reason) {
        throw meter.failed(reason);
      } finally {
        meter.record();
      }
    },
  };
}

/** Everything that can be wrong with a request before any upstream hears of it, in the documented order. */
function admit(
  { router, permit }: CorePorts,
  request: CompletionRequest,
  { call, mode }: { call: Call; mode: Mode },
): Plan {
  if (request.model === "") throw invalidField("model", "is required");
  const primary = find(router, request.model, "model");
  const candidates = [primary];
  request.fallbackModels.forEach((id, index) => {
    const model = find(router, id, `fallback_models[${index}]`);
    if (!candidates.includes(model)) candidates.push(model);
  });
  const capability = request.modalities.includes(Modality.IMAGE) ? "images" : "chat";
  permit(call.principal, { models: candidates.map((model) => model.id), capability });
  validate(request, primary, () => router.list().flatMap((model) => (makes(model, Modality.IMAGE) ? [model.id] : [])));
  if (request.strict && request.unrecognizedFields.length > 0) throw unrecognized(request.unrecognizedFields);
  return router.plan(request, candidates, mode);
}

function find(router: Router, id: string, field: string): Model {
  const model = router.find(id);
  if (model === undefined) throw modelNotFound(id, field);
  return model;
}

function unrecognized(fields: readonly string[]): Failure {
  const violations: FieldViolation[] = fields.map((field) => ({
    field,
    description: "is not known here, and the request is strict",
  }));
  return new Failure("invalid_request", `${fields[0]}: is not known here, and the request is strict.`, { violations });
}

/** What is noted of one completion while it runs. */
class Meter {
  readonly routerCall: RouterCall;
  readonly #ports: CorePorts;
  readonly #request: CompletionRequest;
  readonly #call: Call;
  readonly #mode: Mode;
  readonly #attempts: Attempt[] = [];
  // Whoever leaves before the end, or is gone without a word, has cancelled.
  #outcome: "served" | FailureCode = "cancelled";
  #failure: Failure | undefined;
  #candidates: readonly Model[] = [];
  #model: Model | undefined;
  #usage: Usage | undefined;
  #costMicroUsd: number | undefined;
  #firstContentMs: number | undefined;

  constructor(ports: CorePorts, { request, call, mode }: { request: CompletionRequest; call: Call; mode: Mode }) {
    this.#ports = ports;
    this.#request = request;
    this.#call = call;
    this.#mode = mode;
    const created = Math.floor(ports.clock.now() / 1000);
    this.routerCall = { completionId: call.completionId, created, signal: call.signal, attempts: this.#attempts };
  }

  admitted(plan: Plan): Plan {
    this.#candidates = plan.candidates;
    return plan;
  }

  observe({ event }: CompletionChunk): void {
    if (event.case === "start") {
      this.#model = this.#candidates.find((model) => model.id === event.value.model);
      this.#firstContentMs = this.#ports.clock.monotonic() - this.#call.arrivedMs;
    } else if (event.case === "usage") this.#usage = event.value;
    else if (event.case === "report") this.complete(event.value);
  }

  served(model: Model, usage: Usage | undefined): void {
    this.#model = model;
    this.#usage = usage;
  }

  /** The answer is whole: adds to its report what core knows. */
  complete(report: Report): void {
    this.#outcome = "served";
    report.omitted = [...this.#request.unrecognizedFields, ...report.omitted];
    const price = this.#model?.price;
    if (this.#usage === undefined || price === undefined) return;
    this.#costMicroUsd = costOf(this.#usage, price);
    report.costMicroUsd = BigInt(this.#costMicroUsd);
  }

  failed(reason: unknown): Failure {
    this.#failure = Failure.from(reason);
    this.#outcome = this.#failure.code;
    return this.#failure;
  }

  record(): void {
    const { signal } = this.#call;
    // An entrance that waits for a slow reader notices the deadline first, and only returns early here.
    if (this.#outcome === "cancelled" && this.#failure === undefined && signal.aborted) this.failed(signal.reason);
    const { principal, requestId, completionId, entrance, arrivedMs } = this.#call;
    this.#ports.recorder.record({
      requestId,
      completionId,
      principal,
      entrance,
      requestedModel: this.#request.model,
      servedModel: this.#model?.id,
      streamed: this.#mode === "stream",
      outcome: this.#outcome,
      attempts: this.#attempts,
      usage: this.#usage,
      costMicroUsd: this.#costMicroUsd,
      durationMs: this.#ports.clock.monotonic() - arrivedMs,
      firstContentMs: this.#firstContentMs,
      failure: this.#failure,
    });
  }
}
