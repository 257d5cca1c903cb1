package parley

import (
	"context"
	"fmt"
	"io"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	parleyv1 "parley.dev/go/parley/v1"
)

// Completions runs completions.
type Completions struct {
	stub parleyv1.CompletionServiceClient
	conn *grpc.ClientConn
}

// Create runs one completion to its end and returns it whole.
//
// Answers of up to 64 MiB are received: the request says so in MaxResponseBytes, unless it has another limit. One above
// 64 MiB needs [grpc.MaxCallRecvMsgSize] among the call's options as well.
func (c *Completions) Create(
	ctx context.Context, request *parleyv1.CompletionRequest, opts ...grpc.CallOption,
) (*parleyv1.Completion, error) {
	return c.stub.Create(ctx, withResponseLimit(request), opts...)
}

// Stream runs one completion and returns the pieces of its answer while it is made; an [Accumulator] joins them.
//
// The call begins with the loop over the result, once for each such loop. Leaving the loop early cancels it. An error is
// the last pair of the loop, with a nil chunk; a loop without one has seen the whole answer.
func (c *Completions) Stream(
	ctx context.Context, request *parleyv1.CompletionRequest, opts ...grpc.CallOption,
) iter.Seq2[*parleyv1.CompletionChunk, error] {
	return func(yield func(*parleyv1.CompletionChunk, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := c.stub.Stream(ctx, request, opts...)
		if err != nil {
			yield(nil, newError(ctx, c.conn, err, nil, nil))
			return
		}
		hasReport := false
		for {
			chunk, err := stream.Recv()
			if err == io.EOF && hasReport {
				return
			}
			if err != nil {
				yield(nil, c.streamError(ctx, err, stream))
				return
			}
			hasReport = hasReport || chunk.GetReport() != nil
			if !yield(chunk, nil) {
				return
			}
		}
	}
}

// Count counts the input tokens of a request without running it.
func (c *Completions) Count(
	ctx context.Context, request *parleyv1.CompletionRequest, opts ...grpc.CallOption,
) (*parleyv1.TokenCount, error) {
	return c.stub.Count(ctx, request, opts...)
}

func (c *Completions) streamError(ctx context.Context, err error, stream grpc.ClientStream) *Error {
	if err == io.EOF {
		err = errIncomplete
	}
	// Also returns when there is no header: the call has ended.
	header, _ := stream.Header()
	return newError(ctx, c.conn, err, header, stream.Trailer())
}

// errIncomplete is the cause of the error of a stream that ends with OK before its report, as behind a proxy that cuts it.
var errIncomplete = fmt.Errorf("%w, %w", io.ErrUnexpectedEOF,
	status.Error(codes.Internal, "the stream ended without its report: the answer is incomplete"))

// withResponseLimit returns the request with the client's own limit, unless it has one. The caller's request stays as it is;
// the copy shares its content, which may be large.
func withResponseLimit(request *parleyv1.CompletionRequest) *parleyv1.CompletionRequest {
	if request.MaxResponseBytes != nil {
		return request
	}
	limited := new(parleyv1.CompletionRequest)
	original, target := request.ProtoReflect(), limited.ProtoReflect()
	original.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		target.Set(field, value)
		return true
	})
	target.SetUnknown(original.GetUnknown())
	limited.MaxResponseBytes = new(int32(maxResponseBytes))
	return limited
}
