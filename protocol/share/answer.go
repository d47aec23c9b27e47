package share

import "time"

// Root is where the service's paths begin; a share is Root + id.
const Root = "/share/v1/"

// Headers of a request. Authorization is left to whoever guards the host.
const (
	HeaderOwner  = "Tideline-Owner"      // a secret of the uploader's own making, 32 to 128 characters
	HeaderUpload = "Tideline-Upload-Key" // what a service may ask of those who upload
)

// MinOwner and MaxOwner bound the length of an owner's token.
const (
	MinOwner = 32
	MaxOwner = 128
)

// Create is the body of PUT Root+id: begin or resume an upload.
type Create struct {
	Manifest  Manifest `json:"manifest"`
	ExpiresIn int64    `json:"expires_in,omitempty"` // seconds after it is complete; 0: the service's default
}

// State of a share.
type State string

// The states of a share. A share that has expired or was deleted is answered
// with a Problem.
const (
	Uploading State = "uploading"
	Complete  State = "complete"
)

// Status answers requests that concern one share.
type Status struct {
	ID       string    `json:"id"`
	State    State     `json:"state"`
	Expires  time.Time `json:"expires"`            // of an upload: when it is given up
	Manifest *Manifest `json:"manifest,omitempty"` // in answers to GET
	Missing  []int64   `json:"missing,omitempty"`  // chunks still to be sent
}

// Limits answers GET Root.
type Limits struct {
	MaxSize       int64 `json:"max_size"`       // bytes of a share
	MaxChunk      int64 `json:"max_chunk"`      // bytes of a chunk
	MaxExpiry     int64 `json:"max_expiry"`     // seconds
	DefaultExpiry int64 `json:"default_expiry"` // seconds
	UploadTime    int64 `json:"upload_time"`    // seconds until an unfinished upload is given up
	UploadKey     bool  `json:"upload_key"`     // whether uploading needs a key
}

// Code names a problem for a program.
type Code string

// The codes of problems, each with its HTTP status.
const (
	BadRequest  Code = "bad_request"  // 400
	BadLink     Code = "bad_link"     // 400
	NeedsKey    Code = "needs_key"    // 401: the upload key is missing or wrong
	WrongOwner  Code = "wrong_owner"  // 403
	CrossOrigin Code = "cross_origin" // 403
	Unknown     Code = "unknown"      // 404
	NoMethod    Code = "no_method"    // 405
	Incomplete  Code = "incomplete"   // 409
	Expired     Code = "expired"      // 410
	Deleted     Code = "deleted"      // 410
	TooLarge    Code = "too_large"    // 413
	BadRange    Code = "bad_range"    // 416
	WrongChunk  Code = "wrong_chunk"  // 422: not the bytes that the manifest promised
	TooMany     Code = "too_many"     // 429
	Storage     Code = "storage"      // 500
	Full        Code = "full"         // 507
)

// A Problem is the body of every answer that is not a success, and the error
// that our client returns for it.
type Problem struct {
	Code    Code   `json:"code"`
	Message string `json:"message"` // what happened and why
	Do      string `json:"do"`      // what to do next
	Status  int    `json:"-"`       // of the HTTP answer
}

func (p *Problem) Error() string { return p.Message + ": " + p.Do }

// Failure wraps a Problem on the wire.
type Failure struct {
	Error *Problem `json:"error"`
}
