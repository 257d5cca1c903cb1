import { create, type DescFile, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { type ServerDuplexStream, status } from "@grpc/grpc-js";
import {
  type ServerReflectionRequest,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import type { Encoded } from "./definition.ts";
import type { PublicStreams } from "./public-streams.ts";
import { toRefusal } from "./status.ts";

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;

/** Services, files and symbols by full name. */
interface Index {
  readonly services: readonly string[];
  readonly files: ReadonlyMap<string, DescFile>;
  readonly symbols: ReadonlyMap<string, DescFile>;
  /** Answers of files, encoded at their first use. */
  readonly answers: Map<DescFile, Answer>;
}

/**
 * Server reflection for grpc-js, so that tools need no proto files. Describes `services` and the messages in `details`, which
 * errors carry. `openStreams` limits the streams.
 */
export function reflectionHandlers(
  services: readonly { readonly typeName: string; readonly file: DescFile }[],
  details: readonly DescFile[],
  openStreams: PublicStreams,
): {
  serverReflectionInfo(call: ServerDuplexStream<Encoded<ServerReflectionRequest>, ServerReflectionResponse>): void;
} {
  // Built at the first request: most processes never get one.
  let index: Index | undefined;
  return {
    serverReflectionInfo(call) {
      if (!openStreams.open(call)) return;
      call.on("data", (encoded: Encoded<ServerReflectionRequest>) => {
        let request: ServerReflectionRequest;
        try {
          request = encoded.read();
        } catch (reason) {
          return void call.emit("error", toRefusal(reason, call));
        }
        index ??= {
          services: services.map(({ typeName }) => typeName),
          ...indexOf([...services.map(({ file }) => file), ...details]),
          answers: new Map(),
        };
        const messageResponse = answer(request, index);
        const { host: validHost } = request;
        const response = create(ServerReflectionResponseSchema, {
          validHost,
          originalRequest: request,
          messageResponse,
        });
        // An answer is 300 times as large as its question: the next one is read when this one is sent. grpc-js itself would
        // buffer 16 of them.
        call.pause();
        call.write(response, () => call.resume());
      });
      call.on("end", () => call.end());
    },
  };
}

function answer({ messageRequest: { case: asked, value } }: ServerReflectionRequest, index: Index): Answer {
  switch (asked) {
    case "listServices": {
      const service = index.services.map((name) => ({ name }));
      return { case: "listServicesResponse", value: { service } };
    }
    case "fileByFilename":
      return fileAnswer(index.files.get(value), index);
    case "fileContainingSymbol":
      return fileAnswer(index.symbols.get(value), index);
    case "fileContainingExtension":
    case "allExtensionNumbersOfType":
      return refusal(status.NOT_FOUND, "There are no extensions.");
    default:
      return refusal(status.UNIMPLEMENTED, "This request of reflection is not supported.");
  }
}

function fileAnswer(file: DescFile | undefined, { answers }: Index): Answer {
  if (file === undefined) return refusal(status.NOT_FOUND, "There is no file or symbol of this name.");
  let found = answers.get(file);
  if (found === undefined) {
    const fileDescriptorProto = [...withDependencies(file)].map(({ proto }) =>
      toBinary(FileDescriptorProtoSchema, proto),
    );
    answers.set(file, (found = { case: "fileDescriptorResponse", value: { fileDescriptorProto } }));
  }
  return found;
}

function refusal(errorCode: number, errorMessage: string): Answer {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}

function indexOf(roots: readonly DescFile[]): Pick<Index, "files" | "symbols"> {
  const all = new Set(roots.flatMap((file) => [...withDependencies(file)]));
  const files = new Map([...all].map((file) => [`${file.name}.proto`, file]));
  const symbols = new Map<string, DescFile>();
  for (const file of all) {
    for (const type of nestedTypes(file)) {
      symbols.set(type.typeName, file);
      for (const name of membersOf(type)) symbols.set(name, file);
    }
  }
  return { files, symbols };
}

function membersOf(type: ReturnType<typeof nestedTypes> extends Iterable<infer T> ? T : never): readonly string[] {
  const names = (members: readonly { readonly name: string }[]): string[] =>
    members.map(({ name }) => `${type.typeName}.${name}`);
  if (type.kind === "service") return names(type.methods);
  return type.kind === "message" ? names([...type.fields, ...type.oneofs]) : [];
}

/** A file with its dependencies. */
function withDependencies(file: DescFile, found = new Set<DescFile>()): Set<DescFile> {
  if (found.has(file)) return found;
  found.add(file);
  for (const dependency of file.dependencies) withDependencies(dependency, found);
  return found;
}
