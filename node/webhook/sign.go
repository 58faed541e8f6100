package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The headers that each delivery carries; the last one only with secrets.
const (
	headerID   = "Webhook-Id"
	headerTime = "Webhook-Timestamp"
	headerSig  = "Webhook-Signature"
)

// signer holds the keys, in the order in which their signatures are sent.
type signer [][]byte

// newSigner reads secrets of the form whsec_<base64 of 24 to 64 bytes>. Its
// errors name a secret by its place, never by its text.
func newSigner(secrets []string) (signer, error) {
	var s signer
	var faults []error
	for i, secret := range secrets {
		text, found := strings.CutPrefix(secret, "whsec_")
		key, err := base64.StdEncoding.DecodeString(text)
		if !found || err != nil || len(key) < 24 || len(key) > 64 {
			faults = append(faults, fmt.Errorf("webhook secret %d: must be whsec_ and the base64 of 24 to 64 bytes", i+1))
			continue
		}
		s = append(s, key)
	}
	return s, errors.Join(faults...)
}

// sign returns the value of Webhook-Signature, "" without keys.
func (s signer) sign(id string, at time.Time, body []byte) string {
	signatures := make([]string, len(s))
	for i, key := range s {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + stamp(at) + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}

// check refuses an id that could be read as another id with a time stamp.
func (s signer) check(id string) error {
	if len(s) > 0 && strings.Contains(id, ".") {
		return errors.New("the job's id contains a full stop, which a signed webhook must not have")
	}
	return nil
}

func stamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
