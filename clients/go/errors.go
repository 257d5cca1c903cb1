package parley

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	parleyv1 "parley.dev/go/parley/v1"
)

// Error is why a call failed. It matches [context.DeadlineExceeded] and [context.Canceled] in [errors.Is] when the call ended
// for that reason, and [status.FromError] returns the status that it was made from.
type Error struct {
	// Code is the status code.
	Code codes.Code
	// Reason is the name of the gateway's reason, such as MODEL_NOT_FOUND, also of one that this version does not know.
	// Empty when the gateway did not answer, and for the few refusals by its gRPC library.
	Reason string
	// Message says what is wrong and what to do.
	Message string
	// RequestID is the call's ID, for the operator's logs. Empty when the gateway did not answer and the caller set none.
	RequestID string
	// FieldViolations are the request's fields that the gateway refused.
	FieldViolations []*errdetails.BadRequest_FieldViolation
	// Attempts are the upstream models that were tried or skipped, in order.
	Attempts []*parleyv1.Attempt
	// RetryAfter is how long the gateway asks to wait before the next call. Zero when it does not say.
	RetryAfter time.Duration
	// Retryable says whether the same call may succeed later. The client has already retried by the service config.
	Retryable bool

	cause error
}

// newError makes an Error of the error of a call over conn and of the metadata that came with it.
func newError(ctx context.Context, conn *grpc.ClientConn, err error, header, trailer metadata.MD) *Error {
	s := statusOf(err)
	e := &Error{Code: s.Code(), Message: s.Message(), cause: err}
	sent, _ := metadata.FromOutgoingContext(ctx)
	e.RequestID = cmp.Or(first(trailer, requestIDKey), first(header, requestIDKey), first(sent, requestIDKey))
	// Without advice, as for a lost connection, the code decides.
	e.Retryable = e.Code == codes.Unavailable
	if e.Retryable && len(header) == 0 && len(trailer) == 0 {
		e.Message = fmt.Sprintf("no answer from %s: %s", conn.Target(), e.Message)
	}
	for _, detail := range s.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			e.Reason = detail.GetReason()
		case *errdetails.BadRequest:
			e.FieldViolations = detail.GetFieldViolations()
		case *errdetails.RetryInfo:
			e.RetryAfter = detail.GetRetryDelay().AsDuration()
			e.Retryable = true
		case *parleyv1.AttemptList:
			e.Attempts = detail.GetAttempts()
		}
	}
	if pushback, err := strconv.Atoi(first(trailer, "grpc-retry-pushback-ms")); err == nil {
		e.Retryable = pushback >= 0
		if e.RetryAfter == 0 && e.Retryable {
			e.RetryAfter = time.Duration(pushback) * time.Millisecond
		}
	}
	return e
}

// ErrorReason returns the value that Reason names. It is ERROR_REASON_UNSPECIFIED without a reason, and for a reason of a
// later version.
func (e *Error) ErrorReason() parleyv1.ErrorReason {
	return parleyv1.ErrorReason(parleyv1.ErrorReason_value["ERROR_REASON_"+e.Reason])
}

// Error returns the code, reason, message and request ID in one line.
func (e *Error) Error() string {
	text := "parley: " + e.Code.String()
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	text += ": " + e.Message
	if e.RequestID != "" {
		text += fmt.Sprintf(" [request %s]", e.RequestID)
	}
	return text
}

// Unwrap returns the error of grpc-go.
func (e *Error) Unwrap() error { return e.cause }

// GRPCStatus returns the status with all its details.
func (e *Error) GRPCStatus() *status.Status { return statusOf(e.cause) }

// Is reports whether target is the context error that the status code stands for. grpc-go does not wrap those.
func (e *Error) Is(target error) bool {
	return target == context.DeadlineExceeded && e.Code == codes.DeadlineExceeded ||
		target == context.Canceled && e.Code == codes.Canceled
}

// statusOf returns the status that an error has or wraps. grpc-go wraps the last one of a call that it retried, and
// [status.FromError] would put the wrapping's text before the gateway's.
func statusOf(err error) *status.Status {
	var inner interface{ GRPCStatus() *status.Status }
	if errors.As(err, &inner) {
		return inner.GRPCStatus()
	}
	return status.Convert(err)
}

// first returns the first value of a key: the gateway's header and trailer may both have one.
func first(md metadata.MD, key string) string {
	if values := md.Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}
