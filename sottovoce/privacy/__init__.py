"""What could an attacker still learn? A mechanism is attacked through its public interface."""
