// Floors on grpc-js, in bytes: an echo that generates its answers, and, given an upstream's port, a relay that calls it
// with undici's dispatch and forwards the response, one message per event.
import {
  Server,
  ServerCredentials,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServerWritableStream,
} from "@grpc/grpc-js";
import { type Dispatcher, Pool } from "undici";
import { endWithParent, type Ready } from "../child.ts";
import type { Load } from "../loads.ts";
import { MARK, WHOLE_TEXT } from "../upstream/answers.ts";
import { toHttpRequest } from "../load/formats.ts";

const load = JSON.parse(process.argv[2]!) as Load;
const upstreamPort = process.argv[3];

type Answer = (bytes: Buffer) => void;
type Ask = (call: { readonly onPiece: Answer; readonly onEnd: () => void }) => void;

const asBytes = (bytes: Buffer): Buffer => bytes;
const bytesOnly = {
  requestStream: false,
  requestSerialize: asBytes,
  requestDeserialize: asBytes,
  responseSerialize: asBytes,
  responseDeserialize: asBytes,
};
const server = new Server();
server.addService(
  {
    create: { ...bytesOnly, path: "/parley.v1.CompletionService/Create", responseStream: false },
    stream: { ...bytesOnly, path: "/parley.v1.CompletionService/Stream", responseStream: true },
  },
  upstreamPort === undefined ? echo() : relay(askUpstream(upstreamPort)),
);

function echo(): { create: CreateHandler; stream: StreamHandler } {
  const whole = Buffer.from(WHOLE_TEXT);
  const message = Buffer.from(`a message about as long as a chunk with its ${MARK}`);
  return {
    create: (_, reply) => reply(null, whole),
    stream: (call) => {
      let left = load.marks;
      const pour = (): void => {
        while (left > 0) {
          left--;
          if (!call.write(message)) return void call.once("drain", pour);
        }
        call.end();
      };
      pour();
    },
  };
}

type CreateHandler = (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => void;
type StreamHandler = (call: ServerWritableStream<Buffer, Buffer>) => void;

function relay(ask: Ask): { create: CreateHandler; stream: StreamHandler } {
  return {
    create: (_, reply) => {
      const pieces: Buffer[] = [];
      ask({ onPiece: (piece) => pieces.push(piece), onEnd: () => reply(null, Buffer.concat(pieces)) });
    },
    stream: (call) => {
      let pending: Buffer = Buffer.alloc(0);
      const onPiece = (piece: Buffer): void => {
        const input = pending.length === 0 ? piece : Buffer.concat([pending, piece]);
        let begin = 0;
        for (let end = input.indexOf("\n\n"); end >= 0; end = input.indexOf("\n\n", begin)) {
          call.write(input.subarray(begin, end));
          begin = end + 2;
        }
        pending = input.subarray(begin);
      };
      ask({ onPiece, onEnd: () => call.end() });
    },
  };
}

function askUpstream(port: string): Ask {
  const upstream = new Pool(`http://127.0.0.1:${port}`);
  const headers = ["content-type", "application/json", "x-api-key", "bench", "anthropic-version", "2023-06-01"];
  const options = { method: "POST", path: "/v1/messages", headers, body: toHttpRequest(load).body } as const;
  return ({ onPiece, onEnd }) => {
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart() {},
      onResponseStart() {},
      onResponseData: (_, piece) => onPiece(piece),
      onResponseEnd: onEnd,
      onResponseError: (_, error) => {
        throw error;
      },
    };
    upstream.dispatch(options, handler);
  };
}

server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  process.send?.({ port } satisfies Ready);
});
endWithParent();
